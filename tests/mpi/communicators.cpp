// Windows over communicators of every shape, and communicators that are freed before their windows.
#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_allocate", "MPI_Win_get_group", "MPI_Win_fence", "MPI_Put")

namespace {

// A ring over the ranks of the communicator, which may be freed as soon as the window exists.
void ring(MPI_Comm comm, bool free_first) {
    int me = 0, ranks = 0;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &ranks);
    long* base = nullptr;
    MPI_Win win;
    CHECK_OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, comm, &base, &win));
    if (free_first) MPI_Comm_free(&comm);
    const int right = (me + 1) % ranks, left = (me + ranks - 1) % ranks;
    base[0] = base[1] = 0;
    MPI_Win_fence(0, win);
    for (long round = 0; round < 20; ++round) {
        const long out = me * 100 + round, one = 1;
        MPI_Put(&out, 1, MPI_LONG, right, 0, 1, MPI_LONG, win);
        MPI_Accumulate(&one, 1, MPI_LONG, right, 1, 1, MPI_LONG, MPI_SUM, win);
        MPI_Win_fence(0, win);
        CHECK_EQ(base[0], left * 100 + round);
        CHECK_EQ(base[1], round + 1);
        MPI_Win_fence(0, win);
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, win);
    long seen = -1;
    MPI_Get(&seen, 1, MPI_LONG, right, 0, 1, MPI_LONG, win);
    MPI_Win_unlock(right, win);
    CHECK_EQ(seen, me * 100 + 19L);
    MPI_Group group;
    CHECK_OK(MPI_Win_get_group(win, &group));
    int group_rank = -1, group_size = -1;
    MPI_Group_rank(group, &group_rank);
    MPI_Group_size(group, &group_size);
    CHECK_EQ(group_rank, me);
    CHECK_EQ(group_size, ranks);
    MPI_Group_free(&group);
    CHECK_OK(MPI_Win_free(&win));
    CHECK(win == MPI_WIN_NULL);
}

}  // namespace

CASE(self) {
    ring(MPI_COMM_SELF, false);
}
CASE(duplicate) {
    for (bool free_first : {false, true}) {
        MPI_Comm comm;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        ring(comm, free_first);
        if (!free_first) MPI_Comm_free(&comm);
    }
}
CASE(reversed_and_subsets) {
    for (int parts = 1; parts <= 3; ++parts) {
        for (bool free_first : {false, true}) {
            MPI_Comm comm;
            MPI_Comm_split(MPI_COMM_WORLD, rank() % parts, size() - rank(), &comm);
            ring(comm, free_first);
            if (!free_first) MPI_Comm_free(&comm);
        }
    }
}

// Processes are at different steps of a first window: a message of one step must not pass for one of another.
CASE(many_in_a_row) {
    for (int i = 0; i < 40; ++i) {
        MPI_Comm comm;
        MPI_Win win;
        void* base = nullptr;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        CHECK_OK(MPI_Win_allocate(64, 1, MPI_INFO_NULL, comm, &base, &win));
        MPI_Win_free(&win);
        MPI_Comm_free(&comm);
    }
}

CASE(intercommunicator_is_refused) {
    SKIP_IF(size() < 2);
    HOST_CANNOT("the host does not refuse an intercommunicator and crashes");
    MPI_Comm half, inter;
    MPI_Comm_split(MPI_COMM_WORLD, rank() % 2, 0, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank() % 2, 3, &inter);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    MPI_Win win;
    void* base = nullptr;
    CHECK_CLASS(MPI_Win_allocate(64, 1, MPI_INFO_NULL, inter, &base, &win), MPI_ERR_COMM);
    CHECK_CLASS(MPI_Win_create(nullptr, 0, 1, MPI_INFO_NULL, inter, &win), MPI_ERR_COMM);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}
