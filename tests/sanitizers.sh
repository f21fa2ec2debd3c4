#!/bin/sh
# Builds and runs tests under a sanitizer, in that preset's build folder:
#   sh tests/sanitizers.sh thread       unit tests, ThreadSanitizer; ranks are threads there, so it sees the protocols' races
#   sh tests/sanitizers.sh address      unit tests, AddressSanitizer and UndefinedBehaviorSanitizer
#   sh tests/sanitizers.sh address-mpi  MPI programs with libosc preloaded, both instrumented the same way; a choice of them
#                                       that enters every room, or with OSC_TEST_FULL=1 all of them, at 2 and 3 ranks
# Any report fails the test that it comes from.
set -euf
cd "$(dirname "$0")/.."
target=unit_tests
chosen="-L unit"
strings=strict_string_checks=1
# Whole stacks, because lsan.supp recognises the leaks of libfabric and of the host by a frame.
unwind=fast_unwind_on_malloc=0
case ${1-} in
    thread) preset=tsan ;;
    address) preset=asan ;;
    address-mpi)
        preset=asan
        # No strict strings: the check of strndup then reads one character more than libgfortran's strings have. A request for
        # too much memory fails, as without a sanitizer.
        strings=allocator_may_return_null=1
        if [ -n "${OSC_TEST_FULL-}" ]; then
            # The long variants themselves are for the release build. Not here: the host alone, the provider net, which leaks
            # in fi_endpoint and fi_cq_read, and adoption, which is about pieces of the C library's malloc.
            unset OSC_TEST_FULL
            target=mpi_tests
            chosen="-L mpi -R [.]n[23]\$|^(lock_all|message_counts)[.] -E [.]host[.]|[.]net[.]|^adopt"
        else
            programs="errors datatypes dynamic requests lifetimes window_counters"
            target="osc osc_spy mpi_data mpi_window"
            chosen="-L mpi -R ^($(echo "$programs" | tr ' ' '|'))[.]n2\$"
        fi
        ;;
    *) echo "usage: sh tests/sanitizers.sh thread|address|address-mpi" >&2; exit 2 ;;
esac
# shellcheck disable=SC2086 -- lists of words on purpose
OSC_CONFIGURE=-DOSC_WARNINGS_ARE_ERRORS=ON sh cmake/build-preset.sh "$preset" $target
TSAN_OPTIONS="halt_on_error=0 exitcode=66 second_deadlock_stack=1${TSAN_OPTIONS:+ $TSAN_OPTIONS}"
ASAN_OPTIONS="detect_leaks=1 $unwind $strings${ASAN_OPTIONS:+ $ASAN_OPTIONS}"
UBSAN_OPTIONS="halt_on_error=1 print_stacktrace=1${UBSAN_OPTIONS:+ $UBSAN_OPTIONS}"
LSAN_OPTIONS="suppressions=$PWD/tests/lsan.supp print_suppressions=0${LSAN_OPTIONS:+ $LSAN_OPTIONS}"
export TSAN_OPTIONS ASAN_OPTIONS UBSAN_OPTIONS LSAN_OPTIONS
# shellcheck disable=SC2086
exec ctest --no-tests=error --test-dir "build/$preset" $chosen --output-on-failure -j "$(nproc)"
