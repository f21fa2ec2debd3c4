#!/bin/sh
# Runs fuzzers that clang builds with AddressSanitizer and UndefinedBehaviorSanitizer, one after the other:
#   sh tests/fuzz/run.sh SECONDS [NAME...]     wire, leases, options, datatypes; all if none is named
# An input that ends a run stays in build/fuzz/found/NAME: the program with its file as argument repeats it. The inputs that
# reach new code stay in build/fuzz/corpus/NAME, from which the next run goes on. CXX names another clang.
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:?usage: sh tests/fuzz/run.sh SECONDS [NAME...]}
shift
[ $# -gt 0 ] || set -- wire leases options datatypes
build=build/fuzz
cmake -S . -B $build -DCMAKE_CXX_COMPILER="${CXX:-clang++}" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS=-O1 -DOSC_FUZZ=ON -DOSC_BUILD_BENCHMARKS=OFF \
    -DOSC_SANITIZE=address,undefined,fuzzer-no-link >/dev/null
cmake --build $build -j 2 --target fuzzers
# The host keeps memory until its end.
export ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
for name; do
    mkdir -p $build/corpus/"$name" $build/found/"$name"
    # Longer inputs from the start, because short ones are few steps. 2: without libosc's warnings, which an input provokes.
    log=$build/$name.log
    timeout -k 5 $((seconds + 60)) $build/tests/fuzz/"$name"_fuzzer $build/corpus/"$name" -max_total_time="$seconds" \
        -max_len=2048 -len_control=0 -rss_limit_mb=4096 -artifact_prefix=$build/found/"$name"/ >"$log" 2>&1 ||
        { grep -av '^#' "$log" | tail -n 60; exit 1; }
    echo "$name: $(grep -a '^Done' "$log")"
done
