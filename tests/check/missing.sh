# Usage: missing.sh MPIEXEC LIBOSC PROGRAM: a libosc.so that has no plugins beside it, or files of another kind. The job says
# so in one line and runs.
set -eu
mpiexec=$1
library=$2
program=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# The libraries of all ABIs; their plugins have the same ends of names.
take() {
    for abi in "" _ompi _abi; do
        ! [ -e "$(dirname "$library")/libosc$abi.so" ] || cp "$(dirname "$library")/libosc$abi.so" "$1/"
    done
}
take "$folder"

# expect OPTION TEXT REASON: the job ends well with one line that has both texts.
expect() {
    if ! env "$1" timeout -k 5 60 "$mpiexec" -n 2 -genv LD_PRELOAD "$folder/libosc.so" "$program" right >"$folder/out" 2>&1; then
        echo "$1: the job failed"
        cat "$folder/out"
        exit 1
    fi
    if [ "$(grep -c "libosc: .*$2.*$3" "$folder/out")" != 1 ]; then
        echo "$1: not one line with \"$2\" and \"$3\""
        cat "$folder/out"
        exit 1
    fi
}

checker='OSC_CHECK=1: the program runs unchecked'
reports='OSC_STATS and OSC_TRACE are off'
expect OSC_CHECK=1 "$checker" 'libosc_verify[_a-z]*.so: cannot open shared object file'
expect OSC_STATS=1 "$reports" 'libosc_reports[_a-z]*.so: cannot open shared object file'
expect OSC_TRACE="$folder/trace.json" "$reports" 'libosc_reports[_a-z]*.so: cannot open shared object file'
adoption='OSC_ADOPT, osc_adopt and OSC_SHARE_HEAP: memory stays private'
expect OSC_ADOPT=always "$adoption" 'libosc_adopt[_a-z]*.so: cannot open shared object file'
expect OSC_SHARE_HEAP=64 "$adoption" 'libosc_adopt[_a-z]*.so: cannot open shared object file'
if [ -e "$folder/trace.json" ] || ls "$folder" | grep -q 'rank-'; then
    echo "a timeline was recorded that nothing merges"
    exit 1
fi
for abi in "" _ompi _abi; do echo 'no library' >"$folder/libosc_verify$abi.so"; done
expect OSC_CHECK=1 "$checker" 'libosc_verify[_a-z]*.so: '

# One process alone lacks the plugins: the others must not wait for it.
rm "$folder"/libosc_verify*.so
mkdir "$folder/whole"
ln -s "$(dirname "$library")"/libosc_*.so "$folder/whole/"
rm -f "$folder"/whole/libosc_ompi.so "$folder"/whole/libosc_abi.so
take "$folder/whole"
for option in OSC_CHECK=1 OSC_STATS=1 OSC_ADOPT=always; do
    if ! env "$option" timeout -k 5 60 "$mpiexec" -n 1 env LD_PRELOAD="$folder/whole/libosc.so" "$program" right : \
        -n 1 env LD_PRELOAD="$folder/libosc.so" "$program" right >"$folder/out" 2>&1; then
        echo "$option with the plugins for one process alone: the job failed"
        cat "$folder/out"
        exit 1
    fi
done
