#!/bin/sh
# The first process of the emulated machine (machine.sh): brings up the device, runs the script, and powers off. rxe0 is
# soft-RoCE on one end of a pair of virtual interfaces.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
mount -t devtmpfs dev /dev
exec >/dev/ttyS0 2>&1
mount -t proc proc /proc
mount -t sysfs sys /sys 2>/dev/null
mount -t tracefs trace /sys/kernel/tracing
mkdir -p /dev/shm /dev/pts
mount -t tmpfs shm /dev/shm
mount -t tmpfs tmp /tmp
mount -t cgroup2 cgroup /sys/fs/cgroup
hostname rdma
printf '127.0.0.1 localhost\n10.9.0.1 rdma\n' >/etc/hosts
ip link set lo up
ip link add ve0 type veth peer name ve1
for end in 0 1; do
    ip addr add "10.9.0.$((end + 1))/24" dev "ve$end"
    ip link set "ve$end" up
done
modprobe -a rdma_rxe ib_uverbs rdma_ucm
rdma link add rxe0 type rxe netdev ve0
ulimit -l unlimited
cd /payload || exit 1
sh "$(cat /script)" </dev/null >/dev/ttyS1 2>&1
echo $? >/dev/ttyS2
sleep 1
echo o >/proc/sysrq-trigger
sleep 10
