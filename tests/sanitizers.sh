#!/bin/sh
# Builds and runs the unit tests under a sanitizer, in that preset's build folder:
#   sh tests/sanitizers.sh thread     ThreadSanitizer; ranks are threads there, so it sees the races of the protocols
#   sh tests/sanitizers.sh address    AddressSanitizer and UndefinedBehaviorSanitizer
# Any report fails the test that it comes from.
set -eu
cd "$(dirname "$0")/.."
case ${1-} in
    thread) preset=tsan ;;
    address) preset=asan ;;
    *) echo "usage: sh tests/sanitizers.sh thread|address" >&2; exit 2 ;;
esac
cmake --preset "$preset" -DOSC_BUILD_BENCHMARKS=OFF
cmake --build --preset "$preset" --target unit_tests -j "$(nproc)"
TSAN_OPTIONS="halt_on_error=0 exitcode=66 second_deadlock_stack=1${TSAN_OPTIONS:+ $TSAN_OPTIONS}"
ASAN_OPTIONS="detect_leaks=1 strict_string_checks=1${ASAN_OPTIONS:+ $ASAN_OPTIONS}"
UBSAN_OPTIONS="halt_on_error=1 print_stacktrace=1${UBSAN_OPTIONS:+ $UBSAN_OPTIONS}"
export TSAN_OPTIONS ASAN_OPTIONS UBSAN_OPTIONS
exec ctest --test-dir "build/$preset" -L unit --output-on-failure -j "$(nproc)"
