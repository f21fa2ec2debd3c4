// MPI_Win_test after MPI_Win_complete: once a message says that the origins have completed, the first test returns
// true, whatever path the message takes. Between nodes the complete and that message use connections of their own.
#include <vector>

#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_post", "MPI_Win_start", "MPI_Win_complete", "MPI_Win_wait", "MPI_Win_test",
             "MPI_Put", "MPI_Accumulate")

namespace {

int rounds() {
    return osct::full() ? 500 : 100;
}

bool tests_true(const Window& win) {
    int flag = 0;
    CHECK_OK(MPI_Win_test(win, &flag));
    return flag != 0;
}

// Ends the epoch in which the test was false, so that the next round begins in order.
void end(const Window& win, bool ended) {
    if (!ended) CHECK_OK(MPI_Win_wait(win));
}

// One epoch from rank 0 to the last rank, in which `act` performs the operations; a barrier follows.
template <class Act>
void epoch_of_rank_0(const Window& win, bool tests_early, Act&& act) {
    const int target = size() - 1;
    if (rank() == 0) {
        const Group targets(target);
        CHECK_OK(MPI_Win_start(targets, 0, win));
        MPI_Barrier(MPI_COMM_WORLD);
        act(target);
        CHECK_OK(MPI_Win_complete(win));
    } else if (rank() == target) {
        const Group origins(0);
        CHECK_OK(MPI_Win_post(origins, 0, win));
        if (tests_early) CHECK(!tests_true(win));
        MPI_Barrier(MPI_COMM_WORLD);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() != target) return;
    const bool ended = tests_true(win);
    CHECK(ended);
    end(win, ended);
}

}  // namespace

CASE(true_after_a_barrier) {
    SKIP_IF(size() < 2);
    Window win(WindowKind::Allocate, 64);
    for (int round = 0; round < rounds(); ++round)
        epoch_of_rank_0(win, true, [](int) {});
}

// No test of the window precedes the one that must be true.
CASE(true_at_the_first_test_of_a_window) {
    SKIP_IF(size() < 2);
    for (int round = 0; round < rounds() / 10; ++round) {
        Window win(WindowKind::Allocate, 64);
        epoch_of_rank_0(win, false,
                        [&](int target) { MPI_Put(&round, 1, MPI_INT, target, win.at(target, 0), 1, MPI_INT, win); });
        if (rank() == size() - 1) CHECK_EQ(win.base<int>()[0], round);
    }
}

// More messages than a stream has in flight, and direct transfers.
CASE(true_behind_many_operations) {
    SKIP_IF(size() < 2);
    constexpr int kInts = 1 << 16;
    constexpr int kUpdates = 10000;
    std::vector<int> data(kInts, 3);
    for (WindowKind kind : {WindowKind::Allocate, WindowKind::Create}) {
        Window win(kind, 2 * kInts * sizeof(int));
        for (int round = 0; round < rounds() / 50; ++round) {
            if (rank() == size() - 1) win.base<int>()[0] = 0;
            epoch_of_rank_0(win, round % 2 == 0, [&](int target) {
                const int one = 1;
                for (int i = 0; i < kUpdates; ++i)
                    MPI_Accumulate(&one, 1, MPI_INT, target, win.at(target, 0), 1, MPI_INT, MPI_SUM, win);
                MPI_Put(data.data(), kInts, MPI_INT, target, win.at(target, kInts * sizeof(int)), kInts, MPI_INT, win);
            });
            if (rank() != size() - 1) continue;
            CHECK_EQ(win.base<int>()[0], kUpdates);
            CHECK_EQ(win.base<int>()[2 * kInts - 1], 3);
        }
    }
}

// Every other process is an origin, and a message passes through all of them to the target.
CASE(true_for_all_origins_after_a_chain_of_messages) {
    SKIP_IF(size() < 2);
    Window win(WindowKind::Allocate, static_cast<std::size_t>(size()) * sizeof(int));
    std::vector<int> others;
    for (int other = 1; other < size(); ++other)
        others.push_back(other);
    MPI_Group group = rank() == 0 ? group_of(others) : group_of({0});
    for (int round = 1; round <= rounds(); ++round) {
        if (rank() == 0) {
            CHECK_OK(MPI_Win_post(group, 0, win));
            MPI_Recv(nullptr, 0, MPI_INT, size() - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            CHECK_OK(MPI_Win_start(group, 0, win));
            MPI_Put(&round, 1, MPI_INT, 0, win.at(0, static_cast<std::size_t>(rank()) * sizeof(int)), 1, MPI_INT, win);
            CHECK_OK(MPI_Win_complete(win));
            if (rank() > 1) MPI_Recv(nullptr, 0, MPI_INT, rank() - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(nullptr, 0, MPI_INT, right(), 0, MPI_COMM_WORLD);
        }
        if (rank() != 0) continue;
        const bool ended = tests_true(win);
        CHECK(ended);
        end(win, ended);
        CHECK_ALL(win.base<int>() + 1, others.size(), [&](std::size_t) { return round; });
    }
    MPI_Group_free(&group);
}

// Both directions at once; epochs that end by MPI_Win_wait lie between those that MPI_Win_test ends.
CASE(true_in_both_directions_between_waits) {
    SKIP_IF(size() < 2);
    Window win(WindowKind::Dynamic, 64);
    const int peer = size() - 1 - rank();
    const bool takes_part = peer == 0 || rank() == 0;
    MPI_Group group = takes_part ? group_of({peer}) : MPI_GROUP_NULL;
    for (int round = 0; round < rounds(); ++round) {
        if (takes_part) {
            CHECK_OK(MPI_Win_post(group, 0, win));
            CHECK_OK(MPI_Win_start(group, 0, win));
            MPI_Put(&round, 1, MPI_INT, peer, win.at(peer, 0), 1, MPI_INT, win);
            CHECK_OK(MPI_Win_complete(win));
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (!takes_part) continue;
        const bool ended = round % 3 != 0 && tests_true(win);
        if (round % 3 != 0) CHECK(ended);
        end(win, ended);
        CHECK_EQ(win.base<int>()[0], round);
    }
    if (takes_part) MPI_Group_free(&group);
}
