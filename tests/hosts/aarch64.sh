#!/bin/sh
# Builds libosc for aarch64 in a chroot of Debian 12, and runs tests by qemu's emulation of a process:
#   aarch64.sh [REGEX]    the tests of ctest that REGEX selects; without one the unit tests and the MPI tests below, on a node
# Everything lies in build/aarch64 and stays for the next run. Exit status 77: no chroot can be made here. The emulation orders memory
# nearly as the machine below does, so it shows the code of aarch64, and no fault of its weaker order; static.weak_order reads that.
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
folder=$source/build/aarch64
root=$folder/root
. "$source/tests/hosts/chroot.sh"
can_make_roots aarch64
unset OSC_TEST_FULL CC CXX CMAKE_C_COMPILER_LAUNCHER CMAKE_CXX_COMPILER_LAUNCHER

# Put, accumulate, fence, post-start-complete-wait and locks, each on every kind of window.
mpi="put_get.n1|fast_paths.n2|requests.n2|reductions.n2|compare_and_swap.n2|notify.n2|fence_epochs.n2|pscw.n3|win_test.n2|lock_order.n2|two_level.n2"

# The cases of unit tests that the emulation cannot run. It
without=
leave_out() { without="$without:$1"; }
# starts no emulated program from another, as death tests in a process of their own do;
leave_out AgentOutbox.AnAgentWithoutMemoryEndsTheProcess:"FabricCache.*"
# has no process_vm_readv and process_vm_writev;
leave_out "Cma*.*:Batch.*NotMapped:Batch.*Hole:Batch.KeepsTheOperandsOfUnmappedOperations:Batch.ReportsMemoryThatCannotBeReached"
# sets no limit of the address space;
leave_out AgentService.WithoutMemoryNothingIsExecuted:KeptMemory.AddressesAreGivenBackWhereTheyAreScarce:Memory.AddressSpaceLimit
# installs no filter of system calls;
leave_out Random.AFilterThatRefusesGetrandomLeavesTheDevice:Random.WithoutAnySourceNumbersDifferBetweenProcessesToo
# answers madvise with success and does nothing: no page is populated, or left to its parent;
leave_out "GuardedWindow.*:Reserve.AForkedChildHasACopy"
# has a thread of its own in each process.
leave_out OtherThreads.NamesOfThreads:OtherThreads.ThreadsOfTheHostBeginWhileItStarts:Process.LivesWithoutItsFirstThread
leave_out LockOrder.AThreadMadeLaterFollowsADeferredLock
# lets an ldar come before an earlier stlr, as no aarch64 processor does.
leave_out Litmus.AFenceIsSeenOrWakes

make_root bookworm "$root"
# Debian's wrappers are for the machine below: one that compiles for aarch64, and a launcher of emulated processes.
cat >"$root/usr/local/bin/mpicc-aarch64" <<'END'
#!/bin/sh
set -- aarch64-linux-gnu-gcc "$@" -I/usr/include/aarch64-linux-gnu/mpich -L/usr/lib/aarch64-linux-gnu -lmpich
[ "$2" = -show ] || exec "$@"
shift 2
echo aarch64-linux-gnu-gcc "$@"
END
cat >"$root/usr/local/bin/mpiexec-aarch64" <<'END'
#!/usr/bin/python3
import os, sys
words, at = sys.argv[1:], 0
while words[at].startswith("-"):
    at += 3 if words[at] == "-genv" else 2
os.execv("/usr/bin/mpiexec.mpich", ["mpiexec.mpich", *words[:at], "/usr/bin/qemu-aarch64-static", *words[at:]])
END
chmod 755 "$root/usr/local/bin/mpicc-aarch64" "$root/usr/local/bin/mpiexec-aarch64"
inside "$root" sh -eu -c '
    if [ ! -f /installed ]; then
        dpkg --add-architecture arm64
        apt-get update >/dev/null
        DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends g++-aarch64-linux-gnu cmake make qemu-user-static mpich \
            libmpich12:arm64 libfabric-dev:arm64 libgtest-dev:arm64 nlohmann-json3-dev python3 >/dev/null
        # libmpich-dev:arm64 depends on a compiler that runs on arm64: take its headers only.
        cd /tmp
        apt-get download libmpich-dev:arm64 >/dev/null
        dpkg -x libmpich-dev_*_arm64.deb /
        touch /installed
    fi
    cd /osc
    cmake -S . -B /build -DCMAKE_BUILD_TYPE=Release -DOSC_LTO=OFF -DOSC_UNITY=ON -DOSC_BUILD_BENCHMARKS=OFF -DOSC_WARNINGS_ARE_ERRORS=ON \
        -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_CROSSCOMPILING_EMULATOR=/usr/bin/qemu-aarch64-static \
        -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_LIBRARY_ARCHITECTURE=aarch64-linux-gnu \
        -DOSC_MPICC=/usr/local/bin/mpicc-aarch64 -DOSC_MPIEXEC=/usr/local/bin/mpiexec-aarch64
    cmake --build /build -j 2 --target osc unit_tests osc_spy mpi_data mpi_sync
    # unit.all_cases_run starts the programs without the emulation.
    GTEST_FILTER=-$2 ctest --test-dir /build --output-on-failure -j 2 -R "$1" -E "^unit[.]all_cases_run\$"
' aarch64 "${1:-^(unit[.].*|$mpi)\$}" "${without#:}"
