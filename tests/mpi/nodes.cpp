// A group on two nodes that MPICH simulates (MPIR_CVAR_NUM_CLIQUES=2): creation of shared memory fails on all its
// processes; each half of the group can create it.
#include "harness.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_allocate_shared", "MPI_Win_shared_query", "MPI_Win_sync")

CASE(memory_that_cannot_be_shared) {
    const ReturningComm comm;
    void* base = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    for (int round = 0; round < 2; ++round) {
        CHECK_CLASS(MPI_Win_allocate_shared(64, 1, MPI_INFO_NULL, comm, &base, &win), MPI_ERR_RMA_SHARED);
        CHECK_CLASS(MPI_Win_allocate_shared_c(64, 1, MPI_INFO_NULL, comm, &base, &win), MPI_ERR_RMA_SHARED);
    }
}

CASE(a_node_shares) {
    MPI_Comm node;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    int me = 0, members = 0;
    MPI_Comm_rank(node, &me);
    MPI_Comm_size(node, &members);
    CHECK(members < size());
    long* base = nullptr;
    MPI_Win win;
    CHECK_OK(MPI_Win_allocate_shared(64, 8, MPI_INFO_NULL, node, &base, &win));
    MPI_Win_lock_all(0, win);
    base[0] = rank() + 40;
    MPI_Win_sync(win);
    MPI_Barrier(node);
    MPI_Win_sync(win);
    long sum = 0;
    for (int peer = 0; peer < members; ++peer) {
        MPI_Aint bytes = 0;
        int unit = 0;
        long* there = nullptr;
        CHECK_OK(MPI_Win_shared_query(win, peer, &bytes, &unit, &there));
        sum += there[0];
    }
    MPI_Win_unlock_all(win);
    long wanted = rank() + 40;
    MPI_Allreduce(MPI_IN_PLACE, &wanted, 1, MPI_LONG, MPI_SUM, node);
    CHECK_EQ(sum, wanted);
    CHECK_OK(MPI_Win_free(&win));
    MPI_Comm_free(&node);
}
