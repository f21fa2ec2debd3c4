# Usage: missing.sh MPIEXEC LIBOSC PROGRAM: OSC_CHECK with a libosc.so that has no libosc_verify.so beside it, or one of
# another kind. The job says so in one line and runs.
set -eu
mpiexec=$1
library=$2
program=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$library" "$folder/libosc.so"

# expect NAME TEXT: the job ends well with one line that has TEXT.
expect() {
    if ! OSC_CHECK=1 timeout -k 5 60 "$mpiexec" -n 2 -genv LD_PRELOAD "$folder/libosc.so" "$program" right >"$folder/out" 2>&1; then
        echo "$1: the job failed"
        cat "$folder/out"
        exit 1
    fi
    if [ "$(grep -c "libosc: .*OSC_CHECK=1: the program runs unchecked.*$2" "$folder/out")" != 1 ]; then
        echo "$1: not one line with \"$2\""
        cat "$folder/out"
        exit 1
    fi
}
expect missing 'libosc_verify.so: cannot open shared object file'
echo 'no library' >"$folder/libosc_verify.so"
expect broken 'libosc_verify.so: '
