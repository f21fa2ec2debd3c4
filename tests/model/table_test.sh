#!/bin/sh
# table_test.sh RUN_SH: run.sh with a model and a source file of its own must verify what the table does not have in its
# present state, and nothing else. Stand-ins for spin and cc keep this short: their report counts an error where word.inc
# says so, and with the mutation TORN.
set -u
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/tests/model" "$tree/src" "$tree/tools"
cp "$1" "$tree/tests/model/run.sh"
cd "$tree/tests/model"
unset OSC_TEST_FULL
cat >"$tree/tools/spin" <<'TOOL'
#!/bin/sh
errors=0
[ "$1" != -DTORN ] || errors=1
grep -q right "$TREE/tests/model/word.inc" || errors=1
printf '#!/bin/sh\necho "pan:1: assertion violated (at depth 7)"\necho "errors: %s"\necho " 5 states, stored"\n' $errors >pan
chmod +x pan
TOOL
printf '#!/bin/sh\n' >"$tree/tools/cc"
chmod +x "$tree/tools/spin" "$tree/tools/cc"
TREE=$tree
PATH=$tree/tools:$PATH
export TREE PATH
echo 'int counter;' >../../src/counter.h
echo 'right' >word.inc
cat >count.pml <<'MODEL'
/* A counter.
 * CODE: src/counter.h
 * MUTATIONS: TORN
 */
#include "word.inc"
MODEL
cp count.pml other.pml
: >verified.txt
failed=0

# expect CODE TEXT WHEN [ARGUMENT...]: run.sh's exit code, and a text that its output contains.
expect() {
    code=$1 text=$2 when=$3
    shift 3
    output=$(sh run.sh "$@" 2>&1)
    if [ $? -ne "$code" ] || ! echo "$output" | grep -q "$text"; then
        echo "run.sh $* $when: wanted exit code $code and '$text':"
        echo "$output" | tail -5
        failed=1
    fi
}

expect 0 'count: holds' 'with an empty table'
[ ! -s verified.txt ] || { echo "a run without --record has written the table"; failed=1; }
expect 0 'count with TORN: found' 'with an empty table' --record count
expect 0 'count: verified before' 'after --record'
expect 0 'other: holds' 'after --record of count only'
expect 0 'count: holds' 'after --record' --full
expect 0 'count: verified before' 'after --record' --record count
OSC_TEST_FULL=1
export OSC_TEST_FULL
expect 0 'count: holds' 'after --record, with OSC_TEST_FULL=1'
unset OSC_TEST_FULL
echo 'long counter;' >../../src/counter.h
expect 0 'count: holds' 'after a change of the code'
expect 0 'other: holds' 'after a change of the code' --record
expect 0 'count: verified before' 'after the next --record'
echo 'wrong' >word.inc
expect 1 'count: FAILS' 'after a change of an included file that breaks the model' --record
expect 1 'count: FAILS' 'after --record has failed'
echo 'right' >word.inc
expect 0 'count: verified before' 'with the files as they were recorded'
rm other.pml
sed -i 's/MUTATIONS: TORN/& SLOW/' count.pml
expect 1 'count with SLOW: NOT FOUND' 'with a mutation that changes nothing'
sed -i 's/ SLOW//; s/A counter/The counter/' count.pml
expect 0 'count: holds' 'after a change of the model' --record
[ "$(cut -d' ' -f1 verified.txt)" = count ] || { echo "the table has a model that is gone"; failed=1; }
sed -i 's/^ \* CODE: .*/ * CODE: src\/gone.h/' count.pml
expect 1 'src/gone.h, which does not exist' 'with a name of no file'
exit $failed
