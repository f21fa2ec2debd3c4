// Faults of the fabric at the creation of windows and afterwards: one process's libfabric fails (fake_libfabric), or
// its descriptors end. The windows of all processes are served by the same library, or their creation fails with the
// same class; results are right, and nothing hangs.
//
//   fault_fabric_faults served|host|refused   windows of all kinds, and which library serves them
//   fault_fabric_faults any                   the same, by libosc or by the host
//   fault_fabric_faults no_memory             rank 1 cannot register large memory: its large put has a fault, no other
//   fault_fabric_faults descriptors           rank 1 has 0, 1, 2, ... descriptors left when it creates windows
//   fault_fabric_faults insert                rank 1 cannot reach rank 0: its operations have a fault
#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "all_kinds.h"
#include "few_descriptors.h"

namespace {

using osct::agreed;
using osct::class_of;
using osct::create_and_use;
using osct::g_failures;
using osct::g_rank;
using osct::kHost;
using osct::kRefused;
using osct::kServed;
using osct::kWords;
using osct::Outcome;

constexpr int kMany = 1 << 19;  // words of a transfer too large to register: 4 MiB

void all_kinds(Outcome wanted, bool any) {
    std::vector<std::int64_t> own(kWords);
    MPI_Info atomics = MPI_INFO_NULL;
    MPI_Info_create(&atomics);
    MPI_Info_set(atomics, "osc_atomics", "provider");
    for (const osct::Kind kind : {osct::kAllocated, osct::kCreated, osct::kDynamic}) {
        const Outcome outcome = create_and_use(osct::kCalls[kind], [&](MPI_Win& win, std::int64_t*& base) {
            const MPI_Info info = kind == osct::kCreated ? atomics : MPI_INFO_NULL;
            return osct::create(kind, MPI_COMM_WORLD, info, own.data(), win, base);
        });
        if (any && outcome == kHost && g_rank == 0) std::printf("by the host\n");
        osct::expect(outcome == wanted || (any && outcome == kHost), osct::kCalls[kind]);
    }
    MPI_Info_free(&atomics);
}

// The host serves windows of the communicators that are made while there are too few, and libosc the later ones.
void few_descriptors() {
    std::vector<std::int64_t> own(kWords);
    MPI_Win first = MPI_WIN_NULL;  // on one node: what the two libraries open once is open
    MPI_Win_create(own.data(), 8, 8, MPI_INFO_NULL, MPI_COMM_SELF, &first);
    MPI_Win_free(&first);
    // The host's UCX ends the program if it connects without descriptors.
    std::vector<std::int64_t> theirs(kWords);
    MPI_Sendrecv(own.data(), kWords, MPI_INT64_T, 1 - g_rank, 0, theirs.data(), kWords, MPI_INT64_T, 1 - g_rank, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const int step = std::getenv("OSC_TEST_FULL") != nullptr ? 1 : 5;
    Outcome last = kRefused;
    bool by_host = false;
    for (int left = 0; last != kServed && left < 100; left += step) {
        MPI_Comm comm = MPI_COMM_NULL;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        std::unique_ptr<osct::FewDescriptors> few;
        if (g_rank == 1) few = std::make_unique<osct::FewDescriptors>(left);
        last = create_and_use("MPI_Win_create", [&](MPI_Win& win, std::int64_t*& base) {
            base = own.data();
            return MPI_Win_create(base, MPI_Aint{kWords} * 8, 1, MPI_INFO_NULL, comm, &win);
        });
        osct::expect(last != kRefused, "a creation failed");
        by_host = by_host || last == kHost;
        few = nullptr;
        MPI_Comm_free(&comm);
    }
    osct::expect(by_host && last == kServed, "more descriptors change nothing");
}

// Rank 1's operation on rank 0 has a fault of this class, at the call or at the flush.
void one_fails(int words, int expected, bool others_work) {
    std::int64_t* base = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    const int created = MPI_Win_allocate(MPI_Aint{kMany} * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    osct::expect(created == MPI_SUCCESS, "MPI_Win_allocate failed");
    if (agreed(class_of(created), "the classes of a creation differ") != MPI_SUCCESS) return;
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    std::vector<std::int64_t> out(kMany, g_rank);
    base[0] = base[kMany - 1] = -1;
    MPI_Barrier(MPI_COMM_WORLD);
    if (g_rank == 1) {
        int error = MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        if (error == MPI_SUCCESS) error = MPI_Put(out.data(), words, MPI_INT64_T, 0, 0, words, MPI_INT64_T, win);
        if (error == MPI_SUCCESS) error = MPI_Win_flush(0, win);
        osct::expect(class_of(error) == expected, "the operation has not the expected class");
        if (others_work)
            osct::expect(MPI_Put(out.data(), 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win) == MPI_SUCCESS,
                         "a small put failed");
        const int unlocked = MPI_Win_unlock(0, win);
        if (others_work) osct::expect(unlocked == MPI_SUCCESS, "the unlock failed");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(win);
    if (g_rank == 0) osct::expect(base[0] == (others_work ? 1 : -1) && base[kMany - 1] == -1, "other data arrived");
    MPI_Barrier(MPI_COMM_WORLD);
    const int freed = MPI_Win_free(&win);
    if (others_work) osct::expect(freed == MPI_SUCCESS, "MPI_Win_free failed");
}

}  // namespace

int main(int argc, char** argv) {
    osct::start(argc, argv);
    const std::string wanted = argc > 1 ? argv[1] : "";
    if (wanted == "no_memory")
        one_fails(kMany, MPI_ERR_NO_MEM, true);
    else if (wanted == "descriptors")
        few_descriptors();
    else if (wanted == "insert")
        one_fails(1, MPI_ERR_OTHER, false);
    else
        all_kinds(wanted == "served" || wanted == "any" ? kServed
                  : wanted == "host"                    ? kHost
                                                        : kRefused,
                  wanted == "any");
    int failures = 0;
    MPI_Reduce(&g_failures, &failures, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (g_rank == 0) std::printf("%s: %d failures\n", failures == 0 ? "PASSED" : "FAILED", failures);
    std::fflush(stdout);
    MPI_Finalize();
    return g_failures == 0 ? 0 : 1;
}
