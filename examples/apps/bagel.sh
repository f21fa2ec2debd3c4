#!/bin/sh
# Runs BAGEL (Debian's package, over MPICH) on the full configuration interaction of hydrogen fluoride by the host alone and
# with libosc. The parallel algorithm keeps its vectors in windows (MPI_Rput, MPI_Rget and MPI_Raccumulate in one lock_all
# epoch). The energies of two states must be those of BAGEL's sequential algorithm on one process, and libosc must have served
# the operations.
#
# usage: sh examples/apps/bagel.sh [OPTION]...
#
# As root it installs the package if that is missing.
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

cd "$work"
many=$ranks
ranks=1
if ! launch host got BAGEL "$work/sequential.json"; then
    report "the sequential algorithm fails"
    exit 1
fi
ranks=$many
expected=$(energies "$work/got")
passes() {
    launch "$1" got BAGEL "$folder/bagel/hf.json" && agree "$expected" "$(energies "$output")" &&
        { [ "$1" = host ] || { served MPI_Rget && served MPI_Raccumulate; }; }
}
seconds_of() {
    sed -n 's/.*METHOD: FCI *\([0-9.]*\).*/\1/p' "$1" | tail -1
}
compare_times "energies $expected"
conclude_times "the step FCI"
