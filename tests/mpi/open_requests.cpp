// Request-based operations that cannot complete yet: the call returns an open request, which completes with its
// operation. The target is on another node, and another process holds its lock until it receives a message.
#include <algorithm>
#include <memory>
#include <thread>

#include "completion.h"
#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_MULTIPLE, "MPI_Rput", "MPI_Rget", "MPI_Raccumulate", "MPI_Rget_accumulate")

using osct::complete;
using osct::kRequests;

namespace {

constexpr int kInts = 5000;

// Three processes: the holder has locked the target, so that no operation of others can complete there. Rank 0 starts
// operations on the target, and sends the holder a message to release the lock. The target is on another node.
constexpr int kGo = 70, kHeld = 71;

int held_target() {
    return size() - 1;
}
int holder() {
    return 1;
}

void let_go() {
    const int go = 1;
    CHECK_OK(MPI_Send(&go, 1, MPI_INT, holder(), kGo, MPI_COMM_WORLD));
}

// `asking` is what rank 0 does between its lock and its unlock of the target; it calls let_go() once, or sends that
// message itself, and receives the holder's.
template <class F>
void while_held(const Window& win, F&& asking) {
    const MPI_Win handle = win;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() == holder()) {
        static std::vector<int> got(1 << 20);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, held_target(), 0, handle);
        // The lock may be requested by the first operation only, so this one acquires it.
        int seen = 0;
        MPI_Get(&seen, 1, MPI_INT, held_target(), win.at(held_target(), 0), 1, MPI_INT, handle);
        MPI_Win_flush(held_target(), handle);
        MPI_Send(&seen, 1, MPI_INT, 0, kHeld, MPI_COMM_WORLD);
        MPI_Recv(got.data(), 1 << 20, MPI_INT, 0, kGo, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Win_unlock(held_target(), handle);
        MPI_Send(&seen, 1, MPI_INT, 0, kGo, MPI_COMM_WORLD);
    } else if (rank() == 0) {
        int seen = 0;
        MPI_Recv(&seen, 1, MPI_INT, holder(), kHeld, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Win_lock(MPI_LOCK_SHARED, held_target(), 0, handle);
        asking();
        MPI_Win_unlock(held_target(), handle);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

// Only a lock of a target on another node is asked for without being awaited.
bool cannot_be_held_back() {
    return size() < 3 || !osct::served_by_osc() || (osct::same_node(0) && osct::same_node(held_target()));
}

bool all_goes_directly() {
    return osct::debug_setting("net_protocol") == "direct";
}

constexpr int kMany = 10000;

// The target's memory is its index times 3.
void fill(const Window& win) {
    for (int i = 0; i < kInts; ++i)
        win.base<int>()[i] = 3 * i;
    MPI_Win_sync(win);
    MPI_Barrier(MPI_COMM_WORLD);
}

bool tested(MPI_Request& request) {
    int flag = 0;
    CHECK_OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
    return flag != 0;
}

}  // namespace

// A get of any size and form returns although its target is locked by a process that waits for this one.
CASE(requests_are_returned_at_once) {
    SKIP_IF(cannot_be_held_back());
    for (int count : {1, kInts}) {
        for (int variant = 0; variant < 8; ++variant) {
            // A direct access to a region waits for the lock first.
            const bool regions = count == 1 && variant % 2 != 0 && !all_goes_directly();
            Window win(regions ? WindowKind::Dynamic : WindowKind::Allocate, kInts * sizeof(int));
            fill(win);
            while_held(win, [&] {
                std::vector<int> in(kInts, -1), fetched(kInts, -1);
                int answer = -1;
                const MPI_Aint disp = win.at(held_target(), 0);
                MPI_Request requests[kRequests];
                CHECK_OK(MPI_Rget(in.data(), count, MPI_INT, held_target(), disp, count, MPI_INT, win, &requests[0]));
                CHECK_OK(MPI_Rget_accumulate(nullptr, 0, MPI_INT, fetched.data(), count, MPI_INT, held_target(), disp,
                                             count, MPI_INT, MPI_NO_OP, win, &requests[1]));
                CHECK_OK(MPI_Irecv(&answer, 1, MPI_INT, holder(), kGo, MPI_COMM_WORLD, &requests[2]));
                CHECK_OK(MPI_Isend(&answer, 0, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[3]));
                int flag = 1;
                for (int i = 0; i < 100; ++i) {
                    CHECK(!tested(requests[0]));
                    CHECK(!tested(requests[1]));
                    CHECK_OK(MPI_Request_get_status(requests[0], &flag, MPI_STATUS_IGNORE));
                    CHECK_EQ(flag, 0);
                    CHECK_OK(MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE));
                    CHECK_EQ(flag, 0);
                }
                CHECK_ALL(in.data(), kInts, [](std::size_t) { return -1; });
                let_go();
                complete(variant, requests);
                CHECK_ALL(in.data(), kInts, [&](std::size_t i) { return static_cast<int>(i) < count ? 3 * i : -1; });
                CHECK_ALL(fetched.data(), kInts,
                          [&](std::size_t i) { return static_cast<int>(i) < count ? 3 * i : -1; });
            });
        }
    }
}

// The status calls of MPI 4.1 follow that of MPI 2.
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
constexpr int kStatusCalls = 4;
#else
constexpr int kStatusCalls = 1;
#endif

int get_status([[maybe_unused]] int call, MPI_Request request, int& flag, MPI_Status& status) {
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
    int index = 0;
    if (call == 1) return MPI_Request_get_status_all(1, &request, &flag, &status);
    if (call == 2) return MPI_Request_get_status_any(1, &request, &index, &flag, &status);
    if (call == 3) return MPI_Request_get_status_some(1, &request, &flag, &index, &status);
#endif
    return MPI_Request_get_status(request, &flag, &status);
}

// Nothing but a status call looks at the request, which completes all the same.
CASE(status_calls_make_progress) {
    SKIP_IF(cannot_be_held_back());
    for (int call = 0; call < kStatusCalls; ++call) {
        Window win(WindowKind::Create, kInts * sizeof(int));
        fill(win);
        while_held(win, [&] {
            std::vector<int> in(kInts, -1);
            MPI_Request request;
            MPI_Status status;
            int answer = 0, flag = 0;
            CHECK_OK(MPI_Rget(in.data(), kInts, MPI_INT, held_target(), win.at(held_target(), 0), kInts, MPI_INT, win,
                              &request));
            let_go();
            while (!flag)
                CHECK_OK(get_status(call, request, flag, status));
            CHECK_ALL(in.data(), kInts, [](std::size_t i) { return 3 * i; });
            CHECK(request != MPI_REQUEST_NULL);
            CHECK_OK(MPI_Test_cancelled(&status, &flag));
            CHECK_EQ(flag, 0);
            CHECK_OK(MPI_Wait(&request, &status));
            MPI_Recv(&answer, 1, MPI_INT, holder(), kGo, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        });
    }
}

// The holder releases the lock after a long message, which this process must send while it waits for the request.
CASE(a_wait_drives_messages) {
    SKIP_IF(cannot_be_held_back());
    for (const bool all : {false, true}) {
        Window win(WindowKind::Allocate, kInts * sizeof(int));
        fill(win);
        while_held(win, [&] {
            static const std::vector<int> big(1 << 20, 1);
            int in = -1, answer = 0;
            MPI_Request request, sent;
            CHECK_OK(MPI_Isend(big.data(), 1 << 20, MPI_INT, holder(), kGo, MPI_COMM_WORLD, &sent));
            CHECK_OK(MPI_Rget(&in, 1, MPI_INT, held_target(), win.at(held_target(), 8), 1, MPI_INT, win, &request));
            if (all)
                CHECK_OK(MPI_Waitall(1, &request, MPI_STATUSES_IGNORE));
            else
                CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            CHECK_EQ(in, 6);
            CHECK_OK(MPI_Wait(&sent, MPI_STATUS_IGNORE));
            MPI_Recv(&answer, 1, MPI_INT, holder(), kGo, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        });
    }
}

// More open requests than message buffers, with small and large operations.
CASE(many_are_open_at_once) {
    SKIP_IF(cannot_be_held_back());
    Window win(WindowKind::Allocate, kInts * sizeof(int));
    fill(win);
    for (int count : {1, 1200}) {
        while_held(win, [&] {
            int answer = 0, flag = 1;
            const int many = count == 1 ? kMany : kMany / 10;
            std::vector<int> in(static_cast<std::size_t>(many) * static_cast<std::size_t>(count), -1);
            std::vector<MPI_Request> requests(static_cast<std::size_t>(many));
            for (int i = 0; i < many; ++i)
                CHECK_OK(MPI_Rget(&in[static_cast<std::size_t>(i) * static_cast<std::size_t>(count)], count, MPI_INT,
                                  held_target(), win.at(held_target(), static_cast<std::size_t>(i % 1000) * 4), count,
                                  MPI_INT, win, &requests[static_cast<std::size_t>(i)]));
            CHECK_OK(MPI_Testall(many, requests.data(), &flag, MPI_STATUSES_IGNORE));
            CHECK_EQ(flag, 0);
            let_go();
            CHECK_OK(MPI_Waitall(many, requests.data(), MPI_STATUSES_IGNORE));
            CHECK_ALL(in.data(), in.size(), [&](std::size_t i) {
                const auto length = static_cast<std::size_t>(count);
                return 3 * (i / length % 1000 + i % length);
            });
            MPI_Recv(&answer, 1, MPI_INT, holder(), kGo, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        });
    }
}

// Freed or cancelled before they end, on windows that go afterwards; unlock ends them all.
CASE(let_go_before_the_end) {
    SKIP_IF(cannot_be_held_back());
    for (int round = 0; round < 10; ++round) {
        auto window = std::make_unique<Window>(WindowKind::Allocate, kInts * sizeof(int));
        const Window& win = *window;
        fill(win);
        std::vector<int> in(kInts, -1);
        int small = -1, kept = -1, answer = 0;
        MPI_Request request, keep = MPI_REQUEST_NULL;
        while_held(win, [&] {
            const MPI_Aint disp = win.at(held_target(), 0);
            CHECK_OK(MPI_Rget(in.data(), kInts, MPI_INT, held_target(), disp, kInts, MPI_INT, win, &request));
            CHECK_OK(MPI_Request_free(&request));
            CHECK(request == MPI_REQUEST_NULL);
            CHECK_OK(MPI_Rget(&small, 1, MPI_INT, held_target(), win.at(held_target(), 4), 1, MPI_INT, win, &request));
            CHECK_OK(MPI_Cancel(&request));
            CHECK_OK(MPI_Rget(&kept, 1, MPI_INT, held_target(), win.at(held_target(), 8), 1, MPI_INT, win, &keep));
            let_go();
            CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            CHECK_EQ(small, 3);
            MPI_Recv(&answer, 1, MPI_INT, holder(), kGo, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        });
        if (rank() == 0) {
            CHECK_ALL(in.data(), kInts, [](std::size_t i) { return 3 * i; });
            CHECK_EQ(kept, 6);
        }
        window.reset();
        if (rank() == 0) CHECK_OK(MPI_Wait(&keep, MPI_STATUS_IGNORE));
    }
}

// The origin's buffer of a large put is read only when the lock is had; a small one has been copied.
CASE(puts_end_at_the_origin) {
    SKIP_IF(cannot_be_held_back());
    const bool copies = !all_goes_directly();
    Window win(WindowKind::Allocate, kInts * sizeof(int));
    fill(win);
    while_held(win, [&] {
        std::vector<int> out(kInts, 5);
        int one = 7, answer = 0;
        MPI_Request put, added, small;
        if (!copies) let_go();
        const MPI_Aint disp = win.at(held_target(), 0);
        CHECK_OK(MPI_Rput(&one, 1, MPI_INT, held_target(), disp, 1, MPI_INT, win, &small));
        CHECK_OK(MPI_Wait(&small, MPI_STATUS_IGNORE));
        one = 8;
        CHECK_OK(MPI_Raccumulate(&one, 1, MPI_INT, held_target(), disp, 1, MPI_INT, MPI_SUM, win, &added));
        CHECK_OK(MPI_Wait(&added, MPI_STATUS_IGNORE));
        one = 9;
        CHECK_OK(MPI_Rput(out.data(), kInts - 1, MPI_INT, held_target(), win.at(held_target(), 4), kInts - 1, MPI_INT,
                          win, &put));
        if (copies) let_go();
        CHECK_OK(MPI_Wait(&put, MPI_STATUS_IGNORE));
        std::fill(out.begin(), out.end(), 6);
        MPI_Recv(&answer, 1, MPI_INT, holder(), kGo, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    });
    if (rank() == held_target()) {
        MPI_Win_lock(MPI_LOCK_SHARED, rank(), 0, win);
        CHECK_EQ(win.base<int>()[0], 15);
        CHECK_ALL(win.base<int>() + 1, kInts - 1, [](std::size_t) { return 5; });
        MPI_Win_unlock(rank(), win);
    }
}

// Each thread waits for its own, in another call.
CASE(threads_wait_for_their_own) {
    SKIP_IF(cannot_be_held_back());
    Window win(WindowKind::Allocate, kInts * sizeof(int));
    fill(win);
    while_held(win, [&] {
        std::vector<std::jthread> threads;
        for (int thread = 0; thread < 4; ++thread)
            threads.emplace_back([&, thread] {
                std::vector<int> in(kInts, -1);
                MPI_Request requests[kRequests];
                for (int round = 0; round < 50; ++round) {
                    for (int i = 0; i < kRequests; ++i) {
                        const int count = i % 2 ? kInts / kRequests : 10;
                        const int first = i * kInts / kRequests;
                        CHECK_OK(MPI_Rget(&in[static_cast<std::size_t>(first)], count, MPI_INT, held_target(),
                                          win.at(held_target(), static_cast<std::size_t>(first) * 4), count, MPI_INT,
                                          win, &requests[i]));
                    }
                    if (thread == 0 && round == 0) let_go();
                    complete((thread + round) % 8, requests);
                    CHECK_ALL(in.data() + kInts / kRequests, kInts / kRequests,
                              [](std::size_t i) { return 3 * (static_cast<int>(i) + kInts / kRequests); });
                    std::fill(in.begin(), in.end(), -1);
                }
            });
        threads.clear();
        int answer = 0;
        MPI_Recv(&answer, 1, MPI_INT, holder(), kGo, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    });
}
