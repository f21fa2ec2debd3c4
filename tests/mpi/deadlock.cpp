// Progress spans both libraries: a rank that waits in a lock, fence or start still moves its rendezvous message, which
// the rank that it waits for must first receive.
#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_lock", "MPI_Win_unlock", "MPI_Win_fence", "MPI_Win_start", "MPI_Win_post",
             "MPI_Win_complete", "MPI_Win_wait")

namespace {

constexpr int kMessage = 8 << 20;

// Rank 1 sends, waits one-sidedly by `blocked`; rank 0 receives, only then calls `release`.
template <class Blocked, class Release>
void sender_waits_for_receiver(Blocked blocked, Release release) {
    std::vector<char> buffer(kMessage, static_cast<char>(rank() + 1));
    if (rank() == 1) {
        MPI_Request request;
        MPI_Isend(buffer.data(), kMessage, MPI_CHAR, 0, 5, MPI_COMM_WORLD, &request);
        blocked();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else if (rank() == 0) {
        osct::compute(0.01);
        MPI_Recv(buffer.data(), kMessage, MPI_CHAR, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_EQ(buffer[kMessage - 1], char{2});
        release();
    }
}

}  // namespace

CASE_BY_KIND(lock) {
    SKIP_IF(size() < 2);
    Window win(kind, 64);
    if (rank() == 0) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    int value = -1;
    sender_waits_for_receiver(
        [&] {
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
            MPI_Get(&value, 1, MPI_INT, 0, win.at(0, 0), 1, MPI_INT, win);
            MPI_Win_unlock(0, win);
            CHECK_EQ(value, 99);
        },
        [&] {
            win.base<int>()[0] = 99;
            MPI_Win_unlock(0, win);
        });
    MPI_Barrier(MPI_COMM_WORLD);
}

CASE_BY_KIND(fence) {
    SKIP_IF(size() < 2);
    Window win(kind, 64);
    MPI_Win_fence(0, win);
    const auto fence = [&] { MPI_Win_fence(0, win); };
    sender_waits_for_receiver(fence, fence);
    if (rank() > 1) fence();
}

CASE_BY_KIND(start_and_wait) {
    SKIP_IF(size() < 2);
    Window win(kind, 64);
    const Group zero(0), one(1);
    const auto access = [&win](MPI_Group group) {
        MPI_Win_start(group, 0, win);
        MPI_Win_complete(win);
    };
    const auto expose = [&win](MPI_Group group) {
        MPI_Win_post(group, 0, win);
        MPI_Win_wait(win);
    };
    sender_waits_for_receiver([&] { access(zero); }, [&] { expose(one); });
    sender_waits_for_receiver([&] { expose(zero); }, [&] { access(one); });
}

CASE(window_free) {
    SKIP_IF(size() < 2);
    char* base = nullptr;
    MPI_Win win;
    MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    sender_waits_for_receiver([&] { MPI_Win_free(&win); }, [&] { MPI_Win_free(&win); });
    if (rank() > 1) MPI_Win_free(&win);
}
