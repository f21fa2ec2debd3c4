// A thread that waits in libosc blocks itself only: it goes on with everything else that this process has begun, and
// leaves the window to the other threads.
#include <algorithm>
#include <thread>

#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_MULTIPLE, "MPI_Put", "MPI_Get", "MPI_Win_flush", "MPI_Win_test")

namespace {

constexpr int kBlocked = 1;  // the rank whose lock its own process keeps
constexpr int kOther = 2;
constexpr int kLarge = 100000;  // bytes: they go directly, once the target's lock is had
constexpr int kGo = 60;

// Whether operations on a locked target of another node stay incomplete in this run.
bool cannot_be_held_back() {
    if (size() < 3 || !osct::served_by_osc()) return true;
    int same = osct::same_node(kBlocked) ? 1 : 0;
    MPI_Bcast(&same, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return same != 0;
}

bool holds_back(const Window& win) {
    const bool mine = rank() == kBlocked;
    if (mine) CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, kBlocked, 0, win));
    MPI_Barrier(MPI_COMM_WORLD);
    return mine;
}

// Polls for the last byte of another process's put; false after `seconds`.
bool comes(const Window& win, double seconds) {
    char last = 0;
    for (const double begun = osct::now(); last == 0 && osct::now() - begun < seconds;) {
        CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, kOther, 0, win));
        CHECK_OK(MPI_Get(&last, 1, MPI_CHAR, kOther, win.at(kOther, kLarge - 1), 1, MPI_CHAR, win));
        CHECK_OK(MPI_Win_unlock(kOther, win));
    }
    return last != 0;
}

// Whether puts travel in messages only: a put that gives a request is then complete once its data is copied, and the
// last of its messages goes with the flush.
bool puts_are_copied() {
    const std::string protocol = osct::debug_setting("net_protocol");
    return protocol == "messages" || protocol == "buffered";
}

}  // namespace

// The first request cannot complete before the second one's data has arrived. Both calls that wait for all requests and
// calls that wait for the first one must return.
CASE(requests_of_the_host_progress_in_a_wait) {
    SKIP_IF(cannot_be_held_back());
    SKIP_IF(puts_are_copied());
    for (const bool all : {true, false}) {
        Window locks(WindowKind::Allocate, 64), data(WindowKind::Allocate, kLarge);
        for (const Window* blocked : {&locks, &data}) {  // another window, or the same
            const Window& first = *blocked;
            MPI_Barrier(MPI_COMM_WORLD);
            if (holds_back(first)) {
                CHECK(comes(data, 10));
                CHECK_OK(MPI_Win_unlock(kBlocked, first.handle()));
            } else if (rank() == 0) {
                const std::vector<char> out(kLarge, 1);
                char in = 1;
                MPI_Request requests[2];
                CHECK_OK(MPI_Win_lock_all(0, first.handle()));
                if (&first != &data) CHECK_OK(MPI_Win_lock_all(0, data.handle()));
                CHECK_OK(MPI_Rget(&in, 1, MPI_CHAR, kBlocked, first.at(kBlocked, 0), 1, MPI_CHAR, first.handle(),
                                  &requests[0]));
                CHECK_OK(MPI_Rput(out.data(), kLarge, MPI_CHAR, kOther, data.at(kOther, 0), kLarge, MPI_CHAR,
                                  data.handle(), &requests[1]));
                if (!all) CHECK_OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
                CHECK_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
                CHECK_EQ(in, 0);
                if (&first != &data) CHECK_OK(MPI_Win_unlock_all(data.handle()));
                CHECK_OK(MPI_Win_unlock_all(first.handle()));
            }
            MPI_Barrier(MPI_COMM_WORLD);
            if (rank() == kOther) {
                CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, kOther, 0, data.handle()));
                std::fill_n(data.base(), kLarge, '\0');
                CHECK_OK(MPI_Win_unlock(kOther, data.handle()));
            }
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
}

// A process that sits in the host MPI has its operations begun too.
CASE(requests_do_not_block_a_receive) {
    SKIP_IF(cannot_be_held_back());
    SKIP_IF(puts_are_copied());
    Window win(WindowKind::Allocate, kLarge);
    if (holds_back(win)) {
        int go = 0;
        CHECK_OK(MPI_Recv(&go, 1, MPI_INT, 0, kGo, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK_OK(MPI_Win_unlock(kBlocked, win));
    } else if (rank() == 0) {
        const std::vector<char> out(kLarge, 1);
        int go = 1;
        MPI_Request requests[2];
        CHECK_OK(MPI_Win_lock_all(0, win));
        for (const int target : {kBlocked, kOther})
            CHECK_OK(MPI_Rput(out.data(), kLarge, MPI_CHAR, target, win.at(target, 0), kLarge, MPI_CHAR, win,
                              &requests[target - 1]));
        CHECK_OK(MPI_Recv(&go, 1, MPI_INT, kOther, kGo, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        CHECK_OK(MPI_Send(&go, 1, MPI_INT, kBlocked, kGo, MPI_COMM_WORLD));
        CHECK_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        CHECK_OK(MPI_Win_unlock_all(win));
    } else if (rank() == kOther) {
        const int go = 1;
        CHECK(comes(win, 10));
        CHECK_OK(MPI_Send(&go, 1, MPI_INT, 0, kGo, MPI_COMM_WORLD));
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

// One thread's flush waits for a lock that another process gives back only when a second thread, which uses the same
// target, says so.
CASE(a_blocked_flush_blocks_its_thread_only) {
    SKIP_IF(cannot_be_held_back());
    // A direct write reads the origin's buffer after the lock was granted, so the call does not return before.
    SKIP_IF(osct::debug_setting("net_protocol") == "direct");
    for (const bool local : {false, true}) {
        Window win(WindowKind::Allocate, 64);
        if (holds_back(win)) {
            int go = 0;
            CHECK_OK(MPI_Recv(&go, 1, MPI_INT, 0, kGo, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            CHECK_OK(MPI_Win_unlock(kBlocked, win));
        } else if (rank() == 0) {
            const int one = 1, two = 2, go = 1;
            CHECK_OK(MPI_Win_lock_all(0, win));
            CHECK_OK(MPI_Put(&one, 1, MPI_INT, kBlocked, win.at(kBlocked, 0), 1, MPI_INT, win));
            int in = -1;
            std::thread blocked([&] {
                if (local) {
                    CHECK_OK(MPI_Get(&in, 1, MPI_INT, kBlocked, win.at(kBlocked, 0), 1, MPI_INT, win));
                    CHECK_OK(MPI_Win_flush_local(kBlocked, win));
                } else {
                    CHECK_OK(MPI_Win_flush(kBlocked, win));
                }
            });
            osct::compute(0.05);  // the flush waits by then
            MPI_Request request;
            CHECK_OK(MPI_Rput(&two, 1, MPI_INT, kBlocked, win.at(kBlocked, 4), 1, MPI_INT, win, &request));
            CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            if (!local) CHECK_OK(MPI_Win_flush_local(kBlocked, win));
            CHECK_OK(MPI_Send(&go, 1, MPI_INT, kBlocked, kGo, MPI_COMM_WORLD));
            blocked.join();
            if (local) CHECK_EQ(in, 1);
            CHECK_OK(MPI_Win_unlock_all(win));
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank() == kBlocked) {
            CHECK_EQ(win.base<int>()[0], 1);
            CHECK_EQ(win.base<int>()[1], 2);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

// Threads put, get and flush at one target, each at its own location. A flush completes the operations of its thread,
// large and small.
CASE(flushes_of_several_threads) {
    constexpr int kThreads = 4, kRounds = 60, kInts = 6000;
    Window win(WindowKind::Allocate, kThreads * kInts * sizeof(int));
    CHECK_OK(MPI_Win_lock_all(0, win));
    if (rank() == 0) {
        const int target = size() - 1;
        std::vector<std::jthread> threads;
        for (int thread = 0; thread < kThreads; ++thread)
            threads.emplace_back([&, thread] {
                std::vector<int> out(kInts), in(kInts);
                for (int round = 0; round < kRounds; ++round) {
                    const int count = round % 3 == 0 ? kInts : round % 3 == 1 ? 1 : 900;
                    const MPI_Aint disp = win.at(target, static_cast<std::size_t>(thread) * kInts * sizeof(int));
                    const auto value = [&](std::size_t i) {
                        return thread * 1000000 + round * 10000 + static_cast<int>(i);
                    };
                    for (std::size_t i = 0; i < out.size(); ++i)
                        out[i] = value(i);
                    CHECK_OK(MPI_Put(out.data(), count, MPI_INT, target, disp, count, MPI_INT, win));
                    CHECK_OK(MPI_Win_flush(target, win));
                    std::fill(out.begin(), out.end(), -1);
                    std::fill(in.begin(), in.end(), -1);
                    CHECK_OK(MPI_Get(in.data(), count, MPI_INT, target, disp, count, MPI_INT, win));
                    CHECK_OK(round % 2 == 0 ? MPI_Win_flush(target, win) : MPI_Win_flush_local(target, win));
                    CHECK_ALL(in.data(), static_cast<std::size_t>(count), value);
                }
            });
    }
    CHECK_OK(MPI_Win_unlock_all(win));
    MPI_Barrier(MPI_COMM_WORLD);
}

// One thread polls MPI_Win_test, another makes access epochs at the same window.
CASE(test_leaves_the_window_to_other_threads) {
    SKIP_IF(size() < 2);
    HOST_CANNOT("its threads starve each other as well");
    constexpr int kEpochs = 30;
    const int partner = rank() ^ 1;
    const bool idle = partner >= size();
    Window win(WindowKind::Allocate, 64);
    const osct::Group partners(idle ? rank() : partner);
    double best = 1e9;
    for (int attempt = 0; attempt < 3; ++attempt) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double begun = osct::now();
        std::thread exposing([&] {
            for (int i = 0; !idle && i < kEpochs; ++i) {
                CHECK_OK(MPI_Win_post(partners, 0, win));
                for (int flag = 0; flag == 0;)
                    CHECK_OK(MPI_Win_test(win, &flag));
                CHECK_EQ(win.base<long>()[0], static_cast<long>(i));
            }
        });
        for (long i = 0; !idle && i < kEpochs; ++i) {
            CHECK_OK(MPI_Win_start(partners, 0, win));
            CHECK_OK(MPI_Put(&i, 1, MPI_LONG, partner, win.at(partner, 0), 1, MPI_LONG, win));
            CHECK_OK(MPI_Win_complete(win));
        }
        exposing.join();
        MPI_Barrier(MPI_COMM_WORLD);
        best = std::min(best, osct::now() - begun);
    }
    CHECK(best < kEpochs * 0.1);  // starved, an epoch took that long
}
