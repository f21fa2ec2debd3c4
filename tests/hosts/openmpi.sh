#!/bin/sh
# The launcher of Open MPI by the command line of MPICH's that the tests use:
#   sh tests/hosts/openmpi.sh MPIEXEC [HOSTS] -n N [-genv NAME VALUE]... [-bind-to user:CORE,...] PROGRAM [ARGUMENT...]
# HOSTS: -launcher ssh -launcher-exec COMMAND -iface INTERFACE -hosts NAME,..., and -ppn N (tests/multihost/hosts.sh)
# OMPI_MCA_osc chooses the component that the host's own windows use. Without it: Open MPI 4.1.4 crashes in
# MPI_Compare_and_swap with osc/rdma, where libosc does not serve. Of 5 and 6, osc/ucx prints a line at each creation of a
# window, or opens pipes. 6.0.0rc2 sleeps a second at each start of MPI while it closes btl/ofi; its UCX crashes in later
# sessions, where libraries get the addresses of closed ones: it watches no memory.
# A job that ends without MPI_Finalize leaves its shared segments, so each job has them in a folder of its own.
set -eu
mpiexec=$1
shift
options="--oversubscribe"
folder=
ranks=
trap 'rm -rf $ranks $folder' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
if folder=$(mktemp -d -p /dev/shm --suffix=.openmpi 2>/dev/null); then
    options="$options --mca btl_vader_backing_directory $folder --mca btl_sm_backing_directory $folder"
fi
case $("$mpiexec" --version) in
*") "[1-4].*) old=1 options="$options --mca osc ${OMPI_MCA_osc:-^rdma}" ;;
*") 6."*) old= options="$options --mca osc ${OMPI_MCA_osc:-^ucx} --mca btl ^ofi" && export UCX_MEM_EVENTS=no ;;
*) old= options="$options --mca osc ${OMPI_MCA_osc:-^ucx}" ;;
esac
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
while :; do
    case $1 in
    -n)
        options="$options -n $2"
        shift 2
        ;;
    -genv)
        export "$2=$3"
        options="$options -x $2"
        shift 3
        ;;
    -disable-auto-cleanup)
        options="$options --enable-recovery"
        shift
        ;;
    -launcher | -launcher-exec | -iface | -hosts | -ppn)
        case $1 in
        -launcher-exec) options="$options --mca plm_rsh_agent $2" ;;
        -iface) options="$options --mca btl_tcp_if_include $2 --mca oob_tcp_if_include $2" ;;
        -hosts) options="$options --bind-to none --map-by node -H $2" ;;
        -ppn) options="$(echo "$options" | sed "s/--map-by node/--map-by ppr:$2:node/")" ;;
        esac
        shift 2
        ;;
    -bind-to)
        ranks=$(mktemp)
        rank=0
        for core in $(echo "${2#user:}" | tr , ' '); do
            echo "rank $rank=localhost slot=$core"
            rank=$((rank + 1))
        done >"$ranks"
        # Open MPI 6 wants to be asked for two ranks on a core.
        options="$options --rankfile $ranks --bind-to :overload-allowed"
        shift 2
        ;;
    *) break ;;
    esac
done
# The launcher itself runs without libosc, but from 5 on spawned processes get its environment alone.
preload=${LD_PRELOAD:-}
unset LD_PRELOAD
options=$(echo "$options" | sed 's/ -x LD_PRELOAD//')${preload:+ -x LD_PRELOAD=$preload}
# The variables are for one program: each behind ":" gets them too.
words=$#
while [ "$words" -gt 0 ]; do
    word=$1
    shift
    # shellcheck disable=SC2046 # a list of words
    if [ "$word" = : ]; then
        set -- "$@" : $(echo "$options" | grep -oE -e '-x [^ ]+')
    else
        set -- "$@" "$word"
    fi
    words=$((words - 1))
done
[ -n "$old" ] || [ -z "$preload" ] || export LD_PRELOAD="$preload"
# shellcheck disable=SC2086 # a list of words
"$mpiexec" $options "$@"
