#!/bin/sh
# all_cases_run.sh PROGRAM SOURCE,SOURCE... [PROGRAM SOURCE,SOURCE...]...
# ctest has an entry for each of these sources. Fails if a program has a case that none of its sources defines, or a source
# without cases.
set -eu
while [ $# -gt 0 ]; do
    all=$("$1" --gtest_list_tests)
    chosen=$("$1" --gtest_list_tests "--sources=$2")
    if [ -z "$all" ] || [ "$all" != "$chosen" ]; then
        echo "$1 has cases that no ctest entry runs; the entries run $2" >&2
        exit 1
    fi
    shift 2
done
