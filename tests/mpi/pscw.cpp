// Post, start, complete, wait and test: groups in any order, empty, overlapping pairs, and posts that come early. A
// post belongs to the start of one origin; a library that counts posts takes the post of one peer for that of another.
#include <algorithm>
#include <random>

#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_post", "MPI_Win_start", "MPI_Win_complete", "MPI_Win_wait", "MPI_Win_test",
             "MPI_Put", "MPI_Get")

CASE_BY_KIND(ring_on_every_kind) {
    const Group origins(left()), targets(right());
    Window win(kind, 1024);
    for (int round = 0; round < 100; ++round) {
        const int out = rank() * 1000 + round;
        CHECK_OK(MPI_Win_post(origins, 0, win));
        CHECK_OK(MPI_Win_start(targets, 0, win));
        CHECK_OK(MPI_Put(&out, 1, MPI_INT, right(), win.at(right(), 0), 1, MPI_INT, win));
        CHECK_OK(MPI_Win_complete(win));
        CHECK_OK(MPI_Win_wait(win));
        CHECK_EQ(win.base<int>()[0], left() * 1000 + round);
    }
}

// All ranks are origin and target of all, and each names its group in another order.
CASE(groups_in_any_order) {
    std::vector<int> order(static_cast<std::size_t>(size()));
    std::mt19937 random(static_cast<unsigned>(rank()) + 1);
    Window win(WindowKind::Allocate, 64 * sizeof(int));
    for (int round = 0; round < 50; ++round) {
        for (int i = 0; i < size(); ++i)
            order[static_cast<std::size_t>(i)] = i;
        std::shuffle(order.begin(), order.end(), random);
        MPI_Group posted = group_of(order);
        std::shuffle(order.begin(), order.end(), random);
        MPI_Group started = group_of(order);
        CHECK_OK(MPI_Win_post(posted, 0, win));
        CHECK_OK(MPI_Win_start(started, 0, win));
        // The library must not need the group any more.
        MPI_Group_free(&posted);
        MPI_Group_free(&started);
        const int out = rank() + round * 100;
        for (int target : order)
            MPI_Put(&out, 1, MPI_INT, target, win.at(target, static_cast<std::size_t>(rank()) * 4), 1, MPI_INT, win);
        CHECK_OK(MPI_Win_complete(win));
        CHECK_OK(MPI_Win_wait(win));
        CHECK_ALL(win.base<int>(), order.size(), [&](std::size_t i) { return static_cast<int>(i) + round * 100; });
    }
}

CASE(empty_groups) {
    Window win(WindowKind::Allocate, 64);
    for (int round = 0; round < 20; ++round) {
        CHECK_OK(MPI_Win_post(MPI_GROUP_EMPTY, 0, win));
        CHECK_OK(MPI_Win_start(MPI_GROUP_EMPTY, 0, win));
        CHECK_OK(MPI_Win_complete(win));
        if (round % 2) {
            CHECK_OK(MPI_Win_wait(win));
        } else {
            int flag = 0;
            CHECK_OK(MPI_Win_test(win, &flag));
            CHECK_EQ(flag, 1);
        }
    }
}

CASE_BY_KIND(test_is_false_until_complete) {
    SKIP_IF(size() < 2);
    Window win(kind, 64);
    if (rank() == 0) {
        const Group origins(1);
        CHECK_OK(MPI_Win_post(origins, 0, win));
        int flag = 1;
        CHECK_OK(MPI_Win_test(win, &flag));
        CHECK_EQ(flag, 0);
        MPI_Send(nullptr, 0, MPI_INT, 1, 0, MPI_COMM_WORLD);
        while (!flag)
            CHECK_OK(MPI_Win_test(win, &flag));
        CHECK_EQ(win.base<int>()[0], 77);
    } else if (rank() == 1) {
        const Group targets(0);
        const int out = 77;
        CHECK_OK(MPI_Win_start(targets, 0, win));
        MPI_Recv(nullptr, 0, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_OK(MPI_Put(&out, 1, MPI_INT, 0, win.at(0, 0), 1, MPI_INT, win));
        CHECK_OK(MPI_Win_complete(win));
    }
}

// The epochs of pair (0,1) and pair (2,3) know nothing of each other; rank 3 is late for the whole of the other pair.
CASE(pairs_overlap) {
    SKIP_IF(size() < 4);
    Window win(WindowKind::Allocate, 64);
    const int pair = rank() / 2, peer = rank() ^ 1;
    if (pair < 2) {
        const Group group(peer);
        if (rank() == 3) osct::compute(0.02);
        for (int round = 0; round < 200; ++round) {
            if (rank() % 2 == 0) {
                MPI_Win_start(group, 0, win);
                MPI_Put(&round, 1, MPI_INT, peer, win.at(peer, 0), 1, MPI_INT, win);
                MPI_Win_complete(win);
            } else {
                MPI_Win_post(group, 0, win);
                MPI_Win_wait(win);
                CHECK_EQ(win.base<int>()[0], round);
            }
        }
    }
}

// Rank 0 starts to 1 alone, then to 2 alone, while 2 posts long before 1 does: its early post must not open the epoch
// towards 1, and must not be lost either.
CASE_BY_KIND(early_post_of_another_peer) {
    SKIP_IF(size() < 3);
    Window win(kind, 64);
    for (int round = 0; round < 20; ++round) {
        if (rank() == 0) {
            for (int target : {1, 2}) {
                const Group targets(target);
                MPI_Win_start(targets, 0, win);
                int in = -1;
                MPI_Get(&in, 1, MPI_INT, target, win.at(target, 0), 1, MPI_INT, win);
                MPI_Win_complete(win);
                CHECK_EQ(in, round);
            }
        } else if (rank() <= 2) {
            const Group origins(0);
            if (rank() == 1) osct::compute(0.002);
            win.base<int>()[0] = round;
            MPI_Win_post(origins, 0, win);
            MPI_Win_wait(win);
        }
    }
}

// Each epoch draws the pairs of origins and targets, the same on all ranks. Delays of some ranks let others enter the
// next epoch and post again before the slow ones have started.
CASE(random_groups) {
    HOST_CANNOT("both ranks of two wait for ever in MPI_Win_start once groups differ between epochs");
    std::mt19937 random(20);
    const int rounds = osct::full() ? 3000 : 300;
    const auto ranks = static_cast<std::size_t>(size());
    Window win(WindowKind::Allocate, ranks * sizeof(int));
    std::vector<int> held(ranks, 0);
    for (int round = 1; round <= rounds; ++round) {
        std::vector<int> origins, targets;
        for (int origin = 0; origin < size(); ++origin) {
            for (int target = 0; target < size(); ++target) {
                if (random() % 3 != 0) continue;
                if (origin == rank()) targets.push_back(target);
                if (target == rank()) origins.push_back(origin);
            }
        }
        const bool delayed = random() % static_cast<unsigned>(size()) == static_cast<unsigned>(rank());
        if (delayed && round % 8 == 0) osct::compute(0.0005);
        MPI_Group posted = group_of(origins), started = group_of(targets);
        MPI_Win_post(posted, 0, win);
        MPI_Win_start(started, 0, win);
        for (int target : targets)
            MPI_Put(&round, 1, MPI_INT, target, win.at(target, static_cast<std::size_t>(rank()) * 4), 1, MPI_INT, win);
        MPI_Win_complete(win);
        MPI_Win_wait(win);
        for (int origin : origins)
            held[static_cast<std::size_t>(origin)] = round;
        CHECK_ALL(win.base<int>(), ranks, [&](std::size_t i) { return held[i]; });
        MPI_Group_free(&posted);
        MPI_Group_free(&started);
    }
}

CASE(assertions) {
    SKIP_IF(size() < 2);
    Window win(WindowKind::Allocate, 64);
    const Group origins(left()), targets(right());
    for (int round = 0; round < 20; ++round) {
        int in = -1;
        win.base<int>()[0] = rank() + round;
        MPI_Win_post(origins, MPI_MODE_NOCHECK | MPI_MODE_NOPUT | MPI_MODE_NOSTORE, win);
        // NOCHECK promises that the post was made before the start.
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_start(targets, MPI_MODE_NOCHECK, win);
        MPI_Get(&in, 1, MPI_INT, right(), win.at(right(), 0), 1, MPI_INT, win);
        MPI_Win_complete(win);
        CHECK_EQ(in, right() + round);
        MPI_Win_wait(win);
    }
}
