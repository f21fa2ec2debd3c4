# sh expects.sh REGEX COMMAND...: runs a command, which must end well and print a line that matches.
set -u
regex=$1
shift
"$@" >/tmp/expected 2>&1
status=$?
cat /tmp/expected
[ "$status" -eq 0 ] || exit "$status"
grep -Eq "$regex" /tmp/expected || {
    echo "FAILED: no line matches $regex"
    exit 1
}
