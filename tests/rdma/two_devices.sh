# sh two_devices.sh COMMAND...: runs a command while the emulated machine has a second device, rxe1, at the other end of
# the link. Rank 0 with FI_VERBS_IFACE=ve0 and rank 1 with FI_VERBS_IFACE=ve1 then reach each other over the link, which
# `ip link set ve1 down` cuts; the host MPI and TCP go over the loopback interface.
# Both addresses are this machine's own. For a packet between two of them the kernel looks up the route to the destination
# and finds the loopback interface. The rules make it find the link where an end of the link is the interface in question:
# the kernel's connection manager asks so. accept_local lets the other end take the packet.
set -eu
for interface in all ve0 ve1; do
    echo 1 >"/proc/sys/net/ipv4/conf/$interface/accept_local"
    echo 0 >"/proc/sys/net/ipv4/conf/$interface/rp_filter"
done
rdma link add rxe1 type rxe netdev ve1
ip neigh replace 10.9.0.2 lladdr "$(cat /sys/class/net/ve1/address)" dev ve0
ip neigh replace 10.9.0.1 lladdr "$(cat /sys/class/net/ve0/address)" dev ve1
ip rule add pref 5 iif ve0 from 10.9.0.1 to 10.9.0.2 lookup main
ip rule add pref 6 iif ve1 from 10.9.0.2 to 10.9.0.1 lookup main
ip rule add pref 10 lookup local
ip rule del pref 0 lookup local
crossed() {
    cat /sys/class/net/ve0/statistics/tx_bytes
}
# Also if the command's time ends: the cases that follow need the first device alone.
restore() {
    ip link set ve1 up
    ip rule add pref 0 lookup local
    ip rule del pref 10
    ip rule del pref 5
    ip rule del pref 6
    rdma link delete rxe1
}
trap restore EXIT
trap 'exit 143' TERM
before=$(crossed)
status=0
"$@" || status=$?
bytes=$(($(crossed) - before))
if [ "$bytes" -lt 4096 ]; then
    echo "FAILED: only $bytes bytes crossed the link"
    status=1
fi
exit "$status"
