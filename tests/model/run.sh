#!/bin/sh
# run.sh [model]...
# Verifies the models of the protocols (all *.pml, or those named) with spin: each must hold, and each of the faults that
# its MUTATIONS line names must be found, because a model that cannot fail proves nothing. Exit code 77 where spin or a
# compiler is missing.
set -u
cd "$(dirname "$0")"
for tool in spin cc; do
    command -v "$tool" >/dev/null || { echo "SKIPPED: no $tool; the models were not verified" >&2; exit 77; }
done
models=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

# explore MODEL [MUTATION]: spin's report; every state is visited, deadlocks and assertions are errors. A mutation is found
# sooner than the compiler optimises.
explore() {
    rm -rf "$work/run"
    mkdir "$work/run"
    (cd "$work/run" && spin ${2:+-D"$2"} -a "$models/$1.pml" && cc "-O$([ $# -gt 1 ] && echo 0 || echo 1)" -w -DSAFETY -DCOLLAPSE -o pan pan.c &&
        timeout 100 ./pan -m1000000) 2>&1
}

[ $# -gt 0 ] || set -- *.pml
for model; do
    model=${model%.pml}
    file=$model.pml
    report=$(explore "$model")
    states=$(echo "$report" | sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p')
    if echo "$report" | grep -q 'errors: 0' && ! echo "$report" | grep -qi 'search not completed\|max search depth'; then
        echo "$model: holds, $states states"
    else
        echo "$model: FAILS"
        echo "$report"
        failed=1
    fi
    mutations=$(sed -n 's/.*MUTATIONS: //p' "$file" | tr '\n' ' ')
    if [ -z "$mutations" ]; then
        echo "$model: FAILS: no mutation is named"
        failed=1
    fi
    for mutation in $mutations; do
        report=$(explore "$model" "$mutation")
        if echo "$report" | grep -q 'errors: [1-9]'; then
            echo "$model with $mutation: found ($(echo "$report" | sed -n 's/^pan:1: \(.*\) (at depth.*/\1/p'))"
        else
            echo "$model with $mutation: NOT FOUND"
            echo "$report" | tail -20
            failed=1
        fi
    done
done
exit $failed
