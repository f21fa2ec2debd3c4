#!/bin/sh
# Runs programs over libosc under Slurm, with two nodes, which are the hosts of tests/multihost/hosts.sh:
#   sh tests/hosts/slurm.sh BUILD
# MPICC and MPIEXEC are MPICH's (default: mpicc.mpich, mpiexec.mpich). Nothing is left behind: the daemons live in the
# namespaces of hosts.sh, their files and sockets in a temporary folder. Needs root, slurm-wlm and munge; ends with 77 where
# Slurm is missing or cannot run.
set -eu
here=$(cd "$(dirname "$0")" && pwd)

skip() {
    echo "SKIPPED: $1" >&2
    exit 77
}

if [ "$1" != --inside ]; then
    for program in slurmctld slurmd srun sbatch munged; do
        PATH=$PATH:/usr/sbin command -v $program >/dev/null || skip "there is no $program (packages slurm-wlm and munge)"
    done
    [ "$(nproc)" -ge 2 ] || skip "each of two processes needs a core"
    unset LD_PRELOAD OSC_TEST_FULL # libosc reports variables that it does not know
    folder=$(mktemp -d)
    setpriv --pdeathsig TERM bash "$here/../multihost/hosts.sh" 2 sh "$here/slurm.sh" --inside "$(cd "$1" && pwd)" "$folder" &
    hosts=$!
    trap 'kill "$hosts" 2>/dev/null || true; wait "$hosts" || true; rm -rf "$folder"' EXIT
    trap 'exit 143' TERM INT HUP
    wait "$hosts"
    exit
fi
built=$2
folder=$3
tools=$built/src/tools
cd "$folder"

export PATH="$PATH:/usr/sbin" SLURM_CONF="$folder/slurm.conf"
cat >slurm.conf <<EOF
ClusterName=osc
SlurmctldHost=h0
SlurmUser=root
AuthInfo=socket=$folder/munge
SlurmctldPidFile=$folder/controller.pid
SlurmctldLogFile=$folder/controller.log
StateSaveLocation=$folder/state
SlurmdPidFile=$folder/%n.pid
SlurmdLogFile=$folder/%n.log
SlurmdSpoolDir=$folder/spool-%n
TmpFS=$folder/tmp-%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
SlurmdParameters=config_overrides
NodeName=h[0-1] CPUs=2
PartitionName=all Nodes=ALL Default=YES
EOF
echo CgroupPlugin=cgroup/v1 >cgroup.conf # the hosts have no control groups
mkdir state tmp-h0 tmp-h1
head -c 128 /dev/urandom >key && chmod 600 key
# Nothing of theirs goes where the test's output goes, whose end ctest awaits.
{
    munged --force --key-file="$folder/key" --socket="$folder/munge" --pid-file="$folder/munge.pid" \
        --log-file="$folder/munge.log" --seed-file="$folder/munge.seed" && slurmctld &&
        $ON h0 slurmd -N h0 && $ON h1 slurmd -N h1
} >start.log 2>&1 || skip "Slurm does not start: $(cat ./*.log)"
until [ "$(sinfo -h -o '%T %D')" = "idle 2" ]; do
    [ $((tries = ${tries:-0} + 1)) -le 100 ] || skip "Slurm has no nodes: $(cat ./*.log)"
    sleep 0.1
done

# try COMMAND...: its output goes to the file `output`, and its exit status to $status.
try() {
    echo "$*"
    status=0
    timeout -k 5 60 "$@" >output 2>&1 </dev/null || status=$?
}
fail() {
    echo "FAILED: $1 (exit status $status)" >&2
    cat output >&2
    exit 1
}
# has EXPRESSION...: each matches a line of the output.
has() {
    for expression in "$@"; do grep -Eq "$expression" output || fail "no line: $expression"; done
}
# A job that has ended leaves no process, no file and no name.
nothing_left() {
    until [ -z "$(squeue -h)" ]; do sleep 0.1; done
    for host in h0 h1; do
        $ON $host 'ls -A /dev/shm; grep -o @libosc.* /proc/net/unix; pgrep -a "hist|fault"' >output || true
        [ ! -s output ] || fail "left on $host"
    done
}

preload=--export=ALL,LD_PRELOAD=$built/src/libosc.so
on_two_nodes="libosc: rank 0: libosc .*: 4 ranks on 2 nodes, load and store on a node, libfabric's "
${MPICC:-mpicc.mpich} -O1 -o histogram "$here/../../examples/histogram.c"

try srun --mpi=pmi2 -N2 -n4 "$preload,OSC_VERBOSE=1" ./histogram 2000
has "$on_two_nodes" 'ranks=4 .* verified=yes'
# A value with a comma comes from the caller's environment.
export OSC_VERBOSE=job,strategy
try srun --mpi=pmi2 -N1 -n2 --cpu-bind=cores "$preload" ./histogram 2000
has ': 2 ranks on 1 node, load and store' 'waits spin: each process has a core' 'ranks=2 .* verified=yes'
try "$tools/oscrun" srun --export=NONE --mpi=pmi2 -N1 -n2 --cpu-bind=map_cpu:0,0 ./histogram 2000
has ': 2 ranks on 1 node' 'waits yield at once: 2 processes share 1 core'
unset OSC_VERBOSE

# MPICH's launcher in a job, which starts its proxies by srun.
try "$tools/oscrun" -v salloc -N2 -n4 "$MPIEXEC" -iface eth0 ./histogram 2000
has "$on_two_nodes" 'ranks=4 .* verified=yes'

# The health of the nodes, another launcher than the MPI library's, and a path that a node does not have.
try srun --mpi=pmi2 -N2 -n4 "$tools/osc_info" --check
[ $status -eq 0 ] || fail "osc_info --check"
has 'ok +shared_memory +ranks 0-1' 'ok +rank 0 -> rank 2'
try srun --mpi=none -N2 -n4 "$tools/osc_info" --check
has 'problem +launcher .* 4 processes, and each is rank 0 of 1'
mkdir half && $ON h0 "mount -t tmpfs tmpfs half && cp $built/src/libosc*.so half"
try srun --mpi=pmi2 -N2 -n4 --export=ALL,LD_PRELOAD="$folder/half/libosc.so" "$tools/osc_info" --check ./histogram
has '^h0' 'ok +program' '^h1' "problem +program +LD_PRELOAD has $folder/half/libosc.so"

# A job that hangs: a signal for all of its processes prints reports, and its end leaves nothing.
for end in "scancel -s TERM -u root" "\$ON h0 pkill -KILL -o fault_hang"; do
    srun --mpi=pmi2 -N2 -n4 --kill-on-bad-exit "$preload" "$built/tests/fault/fault_hang" holder_sleeps >output 2>&1 &
    job=$! tries=0 status=0
    until grep -q 'MPI_Win_lock has waited' output; do
        [ $((tries += 1)) -le 300 ] || fail "no report of the hang"
        sleep 0.1
        [ "$(grep -c RANK output)" -lt 4 ] || scancel -s USR1 -u root
    done
    eval "$end"
    wait $job || true
    nothing_left
done

if [ -e "$built/src/libosc_ompi.so" ] && srun --mpi=list 2>&1 | grep -q pmix; then
    mpicc.openmpi -O1 -o histogram "$here/../../examples/histogram.c"
    try "$tools/oscrun" -v srun --mpi=pmix -N2 -n4 ./histogram 2000
    has "$on_two_nodes" 'over Open MPI' 'ranks=4 .* verified=yes'
    nothing_left
fi
echo "all cases passed"
