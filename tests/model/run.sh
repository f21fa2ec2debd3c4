#!/bin/sh
# Verifies the models of the protocols with spin:
#   run.sh [--full] [--record] [model]...
# takes the models that are named, or all *.pml. A model must hold, and spin must find each of the faults that its
# MUTATIONS line names, because a model that cannot fail proves nothing. verified.txt holds, for each model, a hash of the
# model, of the files that it includes and of the source files that its CODE line names, as they were when spin verified it.
# run.sh leaves out models whose hash is in the table; --full or OSC_TEST_FULL=1 verifies every model. --record writes the
# hashes of models that it has verified. Exit code 77: a model needs verification, and spin or a compiler is missing.
set -u
cd "$(dirname "$0")"
root=$PWD/../..
models=$PWD
table=$models/verified.txt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
skipped=0
full=${OSC_TEST_FULL-}
record=
while :; do
    case ${1-} in
        --full) full=1 ;;
        --record) record=1 ;;
        -*) sed -n '2,9s/^# //p' run.sh; exit 2 ;;
        *) break ;;
    esac
    shift
done

# parts FILE: the file and what it includes.
parts() {
    echo "$1"
    for included in $(sed -n 's/^#include "\(.*\)"$/\1/p' "$1"); do parts "$included"; done
}

# hash MODEL: of the model's files and of the code that they name. Fails if they name no file, or one that does not exist.
hash() {
    files=$(parts "$1.pml" | sort -u) || return 1
    # shellcheck disable=SC2086 -- lists of words on purpose
    code=$(sed -n 's/^ \* CODE: //p' $files | tr ' ' '\n' | sort -u)
    if [ -z "$code" ]; then
        echo "$1: FAILS: no CODE line names the source files" >&2
        return 1
    fi
    for file in $code; do
        if [ ! -f "$root/$file" ]; then
            echo "$1: FAILS: its CODE line names $file, which does not exist" >&2
            return 1
        fi
        files="$files $root/$file"
    done
    # shellcheck disable=SC2086
    cat $files | sha256sum | cut -d' ' -f1
}

# explore MODEL [MUTATION]: spin's report; every state is visited, deadlocks and assertions are errors. A mutation is found
# sooner than the compiler optimises.
explore() {
    rm -rf "$work/run"
    mkdir "$work/run"
    (cd "$work/run" && spin ${2:+-D"$2"} -a "$models/$1.pml" && cc "-O$([ $# -gt 1 ] && echo 0 || echo 1)" -w -DSAFETY -DCOLLAPSE -o pan pan.c &&
        ulimit -t 200 && timeout 500 ./pan -m1000000) 2>&1
}

# verify MODEL: false if the model does not hold, or a mutation is not found.
verify() {
    good=0
    report=$(explore "$1")
    states=$(echo "$report" | sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p')
    if echo "$report" | grep -q 'errors: 0' && ! echo "$report" | grep -qi 'search not completed\|max search depth'; then
        echo "$1: holds, $states states"
    else
        echo "$1: FAILS"
        echo "$report"
        good=1
    fi
    mutations=$(sed -n 's/.*MUTATIONS: //p' "$1.pml" | tr '\n' ' ')
    if [ -z "$mutations" ]; then
        echo "$1: FAILS: no mutation is named"
        good=1
    fi
    for mutation in $mutations; do
        report=$(explore "$1" "$mutation")
        if echo "$report" | grep -q 'errors: [1-9]'; then
            echo "$1 with $mutation: found ($(echo "$report" | sed -n 's/^pan:1: \(.*\) (at depth.*/\1/p'))"
        else
            echo "$1 with $mutation: NOT FOUND"
            echo "$report" | tail -20
            good=1
        fi
    done
    return $good
}

# write MODEL HASH: the model's line in the table, which is sorted and has no line of a model that is gone.
write() {
    { grep -v "^$1 " "$table" 2>/dev/null; echo "$1 $2"; } | while read -r name value; do
        [ ! -f "$name.pml" ] || echo "$name $value"
    done | sort >"$work/table"
    cat "$work/table" >"$table"
}

[ $# -gt 0 ] || set -- *.pml
for model; do
    model=${model%.pml}
    value=$(hash "$model") || { failed=1; continue; }
    if [ -z "$full" ] && grep -qx "$model $value" "$table"; then
        echo "$model: verified before, in this state"
        continue
    fi
    if ! command -v spin >/dev/null || ! command -v cc >/dev/null; then
        echo "SKIPPED: no spin or no cc; $model was not verified" >&2
        skipped=77
    elif ! verify "$model"; then
        failed=1
    elif [ -n "$record" ]; then
        write "$model" "$value"
    elif ! grep -qx "$model $value" "$table"; then
        echo "$model: its hash is not in verified.txt; 'sh tests/model/run.sh --record $model' writes it"
    fi
done
[ $failed -eq 0 ] || exit 1
exit $skipped
