# Runs the cases of /payload/cases inside the emulated machine; run.sh has put them there. Ends with the number of failed
# cases, 100 at most.
cd /payload/build || exit 1
# What tests/cmake/MpiTests.cmake sets on every machine. The host MPI stays off the device, because UCX's datagrams time out
# in an emulator: a process that polls keeps the processor from the kernel's thread of the device.
export OSC_FALLBACK=error MPIR_CVAR_POLLS_BEFORE_YIELD=1 UCX_TLS=tcp,self,sm
export OSC_OFI_PROVIDER='verbs;ofi_rxm'
. /payload/settings

now() {
    cut -d ' ' -f 1 /proc/uptime
}

tab=$(printf '\t')
cases=0
failed=
begin=$(now)
while IFS="$tab" read -r name seconds files command; do
    cases=$((cases + 1))
    start=$(now)
    status=0
    timeout -k 10 "$seconds" sh -c "$command" >/tmp/output 2>&1 </dev/null || status=$?
    # A GoogleTest program passes when it skips all of its tests.
    case $name in
        unit.*) grep -q '^\[       OK \]' /tmp/output || status=99 ;;
    esac
    took=$(echo "$(now) $start" | awk '{ printf "%.1f", $1 - $2 }')
    case $status in
        0)
            verdict=ok
            grep -q '^by the host' /tmp/output && verdict="ok, the host serves windows"
            ;;
        77) verdict=skipped ;;
        124 | 137) verdict="FAILED after its limit" failed="$failed $name" ;;
        *) verdict="FAILED with $status" failed="$failed $name" ;;
    esac
    echo "$name: $verdict ($took s)"
    case $verdict in
        FAILED*)
            echo "  $command"
            tail -n "${RDMA_LINES:-40}" /tmp/output | cut -c 1-300 | sed 's/^/  | /'
            ;;
        ok*)
            case $name in
                measure.* | counts.*) sed 's/^/  | /' /tmp/output ;;
            esac
            ;;
        skipped) tail -n 2 /tmp/output | sed 's/^/  | /' ;;
    esac
done </payload/cases

set -- $failed
echo "$((cases - $#)) of $cases cases passed in $(echo "$(now) $begin" | awk '{ printf "%.0f", $1 - $2 }') s, failed:${failed:- none}"
[ $# -le 100 ] || exit 100
exit $#
