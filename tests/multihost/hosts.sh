#!/bin/bash
# hosts.sh N CMD [ARG...]: runs CMD with N hosts h0..h(N-1) on this machine. Needs root. Exit status: CMD's, or 77 with the
# reason where hosts cannot be made.
#
# A host has network, host name, processes, /dev/shm and mounts of its own, so nothing is shared that two machines would not
# share; files are. CMD runs in the network and under the name of h0, but sees the processes of all hosts. It has:
#   $HOSTS      h0,h1,...
#   $MPIRUN     mpiexec set up for them:                hosts.sh 2 sh -c '$MPIRUN -n 4 ./prog'
#   $ON         runs a shell command on one of them:    hosts.sh 2 sh -c '$ON h1 hostname'
#   $HOST_PIDS  one process for each host; kill -9 of it takes the host away, all its processes included
#   $NETWORK    (LINK=tap) changes the network:         $NETWORK cut h0 h1; the commands are in forwarder.cpp
# and chooses by its environment:
#   LINK        bridge (default; the kernel forwards) or tap (the program FORWARDER does)
#   RATE        bridge: limits every host's link, as tc writes rates (1gbit)
#   DELAY_US, DROP_PERCENT, SEED   tap: what the network does from the start
#   MPIEXEC, FORWARDER             programs to use
#
# Nothing can be left behind, not even by kill -9: no namespace has a name, everything lives below one process namespace
# whose first process dies with this script, and the kernel ends the others with it.
set -u
here=$(cd "$(dirname "$0")" && pwd)
self=$here/$(basename "$0")

skip() {
    echo "SKIPPED: $1"
    exit 77
}
fail() {
    echo "hosts.sh: $1" >&2
    exit 1
}

# The first process of a host. It only reaps: a dead process must not look alive to those that ask for its number.
run_host() {
    echo "$1" >/proc/sys/kernel/hostname || exit 1
    mount -t tmpfs -o mode=1777 tmpfs /dev/shm || exit 1
    # The list of network devices that UCX reads is that of the network namespace it was mounted in.
    mount -t sysfs sysfs /sys || exit 1
    # Without IPv6 nothing is on the network that the programs did not send.
    { echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6; } 2>/dev/null
    ip link set lo up || exit 1
    echo up
    exec >&- </dev/null
    while :; do
        sleep 3600 &
        wait $!
    done
}

start_hosts() {
    local i up answer
    for ((i = 0; i < count; i++)); do
        # unshare and not its child is known by number; the child dies with it, and its namespaces are found through it.
        exec {up}< <(exec unshare --net --uts --mount --pid --fork --kill-child --mount-proc \
            bash "$self" --host "h$i" </dev/null)
        pids[i]=$!
        answer=
        read -r -t 20 -u "$up" answer
        [ "$answer" = up ] || fail "h$i does not start"
        exec {up}<&-
    done
}

on_network_of() {
    local pid=${pids[$1]}
    shift
    nsenter --net="/proc/$pid/ns/net" "$@"
}

connect_by_bridge() {
    local i
    # The bridge lives in the namespace that this script itself is in by now.
    ip link add br0 type bridge 2>/dev/null || skip "this kernel has no bridge"
    ip link set br0 up || exit 1
    for ((i = 0; i < count; i++)); do
        ip link add eth0 netns "${pids[i]}" type veth peer name "p$i" || exit 1
        ip link set "p$i" master br0 up || exit 1
        if [ -n "${RATE:-}" ]; then
            on_network_of "$i" tc qdisc add dev eth0 root tbf rate "$RATE" burst 256k latency 50ms || exit 1
        fi
    done
}

connect_by_forwarder() {
    local i ready answer ports=()
    for ((i = 0; i < count; i++)); do
        ports+=("h$i=${pids[i]}")
    done
    exec {ready}< <(exec "$FORWARDER" run "${DELAY_US:-0}" "${DROP_PERCENT:-0}" "${SEED:-1}" "${ports[@]}" </dev/null)
    answer=
    read -r -t 20 -u "$ready" answer
    case $answer in
        ready) ;;
        SKIPPED:*) skip "${answer#SKIPPED: }" ;;
        *) fail "the forwarder does not start" ;;
    esac
    exec {ready}<&-
    export NETWORK="$FORWARDER ask"
}

# Inside: the first process of the process namespace that holds all hosts.
run_inside() {
    local i names=
    pids=()
    # A file for /etc/hosts that no file system keeps.
    mount -t tmpfs -o mode=1777 tmpfs /dev/shm || exit 1
    {
        echo "127.0.0.1 localhost"
        for ((i = 0; i < count; i++)); do echo "10.77.0.$((i + 1)) h$i"; done
    } >/dev/shm/hosts
    mount --bind /dev/shm/hosts /etc/hosts && rm /dev/shm/hosts || exit 1
    ip link set lo up || exit 1
    start_hosts
    if [ "$LINK" = tap ]; then connect_by_forwarder; else connect_by_bridge; fi
    for ((i = 0; i < count; i++)); do
        on_network_of "$i" ip addr add "10.77.0.$((i + 1))/24" dev eth0 || exit 1
        on_network_of "$i" ip link set eth0 up || exit 1
        names=$names${names:+,}h$i
    done

    export HOSTS=$names HOST_PIDS="${pids[*]}" ON="$here/nslaunch"
    # UCX would see one machine in all hosts, by its boot id, and try shared memory between them.
    export UCX_TLS=${UCX_TLS:-tcp,self} UCX_NET_DEVICES=${UCX_NET_DEVICES:-eth0} FI_TCP_IFACE=${FI_TCP_IFACE:-eth0}
    # Without this, mpiexec starts the processes of h0 itself, beside that host instead of on it.
    export HYDRA_LAUNCHER_AUTOFORK=0
    export MPIRUN="$MPIEXEC -launcher ssh -launcher-exec $ON -iface eth0 -hosts $HOSTS"
    nsenter --net="/proc/${pids[0]}/ns/net" --uts="/proc/${pids[0]}/ns/uts" "$@"
    exit $?
}

case ${1:-} in
    --host)
        run_host "$2"
        exit
        ;;
    --inside)
        count=$2
        shift 2
        run_inside "$@"
        ;;
esac

if [ $# -lt 2 ] || ! [[ $1 =~ ^[0-9]+$ ]] || [ "$1" -lt 1 ] || [ "$1" -gt 250 ]; then
    echo "usage: [LINK=bridge|tap] hosts.sh N CMD [ARG...]" >&2
    exit 2
fi
export LINK=${LINK:-bridge} MPIEXEC=${MPIEXEC:-mpiexec.mpich}
export FORWARDER=${FORWARDER:-$here/../../build/release/tests/multihost/multihost_forwarder}
case $LINK in
    bridge) ;;
    tap) [ -x "$FORWARDER" ] || fail "no program FORWARDER=$FORWARDER" ;;
    *) fail "no link '$LINK'; there are bridge and tap" ;;
esac
[ "$(id -u)" -eq 0 ] || skip "hosts need root"
for tool in ip unshare nsenter setpriv mount; do
    command -v "$tool" >/dev/null || skip "hosts need the program $tool"
done
unshare --net --uts --mount --pid --fork --mount-proc true 2>/dev/null || skip "namespaces cannot be made here"
if [ "$LINK" = tap ] && ! [ -c /dev/net/tun ]; then
    { mkdir -p /dev/net && mknod -m 600 /dev/net/tun c 10 200; } 2>/dev/null || skip "no /dev/net/tun"
fi

# All processes inside hold this pipe open, so the end of cat is the end of all of them.
exec {alive}> >(exec cat >/dev/null)
watch=$!
setpriv --pdeathsig KILL unshare --net --mount --pid --fork --kill-child --mount-proc bash "$self" --inside "$@" <&0 &
inside=$!
exec {alive}>&-
end() {
    kill -9 "$inside" 2>/dev/null
    wait "$watch"
}
trap 'exit 143' TERM INT HUP
trap end EXIT
wait "$inside"
