#!/bin/sh
# Runs BAGEL (Debian's package, over MPICH) on the full configuration interaction of hydrogen fluoride by the host alone and
# with libosc. The parallel algorithm keeps its vectors in windows (MPI_Rput, MPI_Rget and MPI_Raccumulate in one lock_all
# epoch). The energies of two states must be those of BAGEL's sequential algorithm on one process, and libosc must have served
# the operations.
#
# usage: sh examples/apps/bagel.sh [--library FILE] [--ranks N] [--rounds N]
#   --library FILE  libosc.so (default: the release build's)
#   --ranks N       processes (default 2)
#   --rounds N      runs of each kind, in turn; the table has their medians (default 3)
#
# As root it installs the package if that is missing. Exit status: 0 if all results with libosc are right, 1 if one is wrong,
# 2 for wrong arguments, 77 if there is no BAGEL over MPICH and none can be installed.
set -eu
folder=$(cd "$(dirname "$0")" && pwd)
ranks=2
rounds=3
limit=300
. "$folder/common.sh"
[ -z "$operands" ] || usage
install_packages bagel
ldd "$(command -v BAGEL)" | grep -q libmpich || skip "this BAGEL is linked with another MPI library"
export BAGEL_NUM_THREADS=1 OSC_VERBOSE=counters
sed 's/"parallel"/"kh"/' "$folder/bagel/hf.json" >"$work/sequential.json"

# energies FILE: of the two states, from the last line of each in the table of iterations.
energies() {
    awk '/=== FCI iteration/ { table = 1 }
         table && NF >= 5 && $2 ~ /^[01]$/ { energy[$2] = $(NF - 2) }
         END { print energy[0], energy[1] }' "$1"
}

# agree EXPECTED GOT: whether each energy is within 1e-6 (atomic units) of the expected one.
agree() {
    echo "$1 $2" | awk '{ if (NF != 4) exit 1
        for (i = 1; i <= 2; ++i) { d = $i - $(i + 2); if (d > 1e-6 || d < -1e-6) exit 1 } }'
}

# served FILE: whether libosc served the operations of the parallel algorithm.
served() {
    grep -q 'MPI_Rget' "$1" && grep -q 'MPI_Raccumulate' "$1"
}

cd "$work"
many=$ranks
ranks=1
if ! launch host got BAGEL "$work/sequential.json"; then
    report "the sequential algorithm fails"
    exit 1
fi
ranks=$many
expected=$(energies "$work/got")
round=0
while [ "$round" -lt "$rounds" ]; do
    round=$((round + 1))
    for variant in host libosc; do
        if launch "$variant" got BAGEL "$folder/bagel/hf.json" && agree "$expected" "$(energies "$work/got")" &&
            { [ "$variant" = host ] || served "$work/got"; }; then
            sed -n 's/.*METHOD: FCI *\([0-9.]*\).*/\1/p' "$work/got" | tail -1 >>"$work/times.$variant"
        elif [ "$variant" = libosc ]; then
            report "with libosc: expected $expected, got $(energies "$work/got")"
        fi
    done
done
host=$(result host)
libosc=$(result libosc)
printf '%-30s %12s %12s %10s\n' "energies" "host" "libosc" "ratio"
printf '%-30s %12s %12s %10s\n' "$expected" "$host" "$libosc" "$(ratio "$host" "$libosc")"
echo "$ranks processes; seconds of the step FCI, medians of $rounds; ratio: libosc to the host"
exit "$failed"
