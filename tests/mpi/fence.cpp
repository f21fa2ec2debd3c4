// Fence epochs with all assertions, and what a fence without operations leaves open (a fence that no RMA call follows
// does not open an epoch, so lock, start and post are legal after it).
#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_fence", "MPI_Put", "MPI_Get", "MPI_Accumulate", "MPI_Win_lock",
             "MPI_Win_unlock", "MPI_Win_lock_all", "MPI_Win_unlock_all", "MPI_Win_start", "MPI_Win_post",
             "MPI_Win_complete", "MPI_Win_wait")

namespace {

MPI_Group world_group() {
    MPI_Group group;
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    return group;
}

}  // namespace

CASE_BY_KIND(adjacent_ranks_exchange) {
    Window win(kind, 64);
    CHECK_OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, win));
    for (int round = 0; round < 50; ++round) {
        const int out = rank() * 1000 + round;
        int in = -1;
        CHECK_OK(MPI_Put(&out, 1, MPI_INT, right(), win.at(right(), 0), 1, MPI_INT, win));
        CHECK_OK(MPI_Win_fence(0, win));
        CHECK_EQ(win.base<int>()[0], left() * 1000 + round);
        CHECK_OK(MPI_Get(&in, 1, MPI_INT, right(), win.at(right(), 0), 1, MPI_INT, win));
        CHECK_OK(MPI_Win_fence(0, win));
        CHECK_EQ(in, rank() * 1000 + round);
    }
    CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
}

CASE_BY_KIND(assertions) {
    Window win(kind, 256);
    for (int round = 0; round < 30; ++round) {
        CHECK_OK(MPI_Win_fence(MPI_MODE_NOPRECEDE | MPI_MODE_NOSTORE, win));
        const long one = round;
        MPI_Put(&one, 1, MPI_LONG, right(), win.at(right(), 0), 1, MPI_LONG, win);
        CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
        CHECK_EQ(win.base<long>()[0], one);
        // The owner stores between epochs, and a reader sees it after the next fence.
        win.base<long>()[1] = rank() * 100 + round;
        long seen = -1;
        CHECK_OK(MPI_Win_fence(MPI_MODE_NOPRECEDE | MPI_MODE_NOPUT, win));
        MPI_Get(&seen, 1, MPI_LONG, left(), win.at(left(), 8), 1, MPI_LONG, win);
        CHECK_OK(MPI_Win_fence(MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOSUCCEED, win));
        CHECK_EQ(seen, left() * 100 + round);
    }
}

CASE_BY_KIND(all_processes_add_to_all) {
    Window win(kind, 1024 * sizeof(double));
    std::vector<double> ones(1024, 1.0);
    MPI_Win_fence(0, win);
    for (int round = 1; round <= 20; ++round) {
        for (int target = 0; target < size(); ++target)
            MPI_Accumulate(ones.data(), 1024, MPI_DOUBLE, target, win.at(target, 0), 1024, MPI_DOUBLE, MPI_SUM, win);
        MPI_Win_fence(0, win);
        CHECK_ALL(win.base<double>(), 1024u, [&](std::size_t) { return round * size(); });
        // The check reads what the next round changes.
        MPI_Win_fence(0, win);
    }
}

CASE_BY_KIND(lock_after_fence) {
    Window win(kind, 64);
    for (int round = 0; round < 5; ++round) {
        CHECK_OK(MPI_Win_fence(0, win));
        const int target = (rank() + round) % size(), out = rank();
        CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
        CHECK_OK(MPI_Put(&out, 1, MPI_INT, target, win.at(target, 0), 1, MPI_INT, win));
        CHECK_OK(MPI_Win_unlock(target, win));
        CHECK_OK(MPI_Win_fence(0, win));
        CHECK_EQ(win.base<int>()[0], (rank() - round % size() + size()) % size());
        CHECK_OK(MPI_Win_lock_all(0, win));
        CHECK_OK(MPI_Win_unlock_all(win));
    }
    CHECK_OK(MPI_Win_fence(0, win));
}

CASE(post_and_start_after_fence) {
    MPI_Group all = world_group();
    for (WindowKind kind : kAllWindowKinds) {
        Window win(kind, 64);
        for (int round = 0; round < 5; ++round) {
            CHECK_OK(MPI_Win_fence(0, win));
            // Exposure and access at once, the post first so that no start waits for ever.
            CHECK_OK(MPI_Win_post(all, 0, win));
            CHECK_OK(MPI_Win_start(all, 0, win));
            const int one = 1;
            for (int target = 0; target < size(); ++target)
                CHECK_OK(MPI_Accumulate(&one, 1, MPI_INT, target, win.at(target, 0), 1, MPI_INT, MPI_SUM, win));
            CHECK_OK(MPI_Win_complete(win));
            CHECK_OK(MPI_Win_wait(win));
            CHECK_EQ(win.base<int>()[0], (round + 1) * size());
        }
        CHECK_OK(MPI_Win_fence(0, win));
    }
    MPI_Group_free(&all);
}

CASE(each_kind_of_epoch_in_turn) {
    MPI_Group all = world_group();
    Window win(WindowKind::Allocate, 64);
    const int one = 1;
    const auto add = [&] {
        CHECK_OK(MPI_Accumulate(&one, 1, MPI_INT, right(), win.at(right(), 0), 1, MPI_INT, MPI_SUM, win));
    };
    for (int round = 0; round < 10; ++round) {
        MPI_Win_fence(0, win);
        add();
        MPI_Win_fence(0, win);
        MPI_Win_lock_all(0, win);
        add();
        MPI_Win_unlock_all(win);
        MPI_Win_fence(0, win);
        MPI_Win_post(all, 0, win);
        MPI_Win_start(all, 0, win);
        add();
        MPI_Win_complete(win);
        MPI_Win_wait(win);
        MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
        add();
        MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
        CHECK_EQ(win.base<int>()[0], (round + 1) * 4);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Group_free(&all);
}
