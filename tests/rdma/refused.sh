# sh refused.sh COMMAND...: runs fault_fabric_faults with the argument `any`. Its windows must be right. Where the host
# serves them, a line must give libosc's reason.
set -u
OSC_FALLBACK=host "$@" >/tmp/refused 2>&1
status=$?
cat /tmp/refused
[ "$status" -eq 0 ] && grep -q '^PASSED' /tmp/refused || exit 1
if grep -q '^by the host' /tmp/refused; then
    grep -Eq 'libosc: .*(the network cannot be used: .|, because .)' /tmp/refused || {
        echo "FAILED: no line gives the reason"
        exit 1
    }
fi
