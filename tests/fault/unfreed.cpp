// MPI_Finalize with a window that the program has not freed, which the standard forbids: campaign.py runs it.
//
//   fault_unfreed STATE [private]
//
// STATE: what the window is in: idle, fence, lock, lock_all (an operation is under way in these three), exposed,
// attached; or stop: idle, and rank 1 is stopped for half a second while the others are in MPI_Finalize.
#include <sys/wait.h>

#include "survivors.h"

namespace {

using namespace fault;

bool g_private = false;

void put(MPI_Win win, int target) {
    static const long value = 7;
    must_work("put", [&] { return MPI_Put(&value, 1, MPI_LONG, target, g_rank, 1, MPI_LONG, win); });
}

void leave_in(const std::string& state) {
    const int right = (g_rank + 1) % g_size;
    const int left = (g_rank + g_size - 1) % g_size;
    static long memory[64];
    long* base = memory;
    MPI_Win win = MPI_WIN_NULL;
    must_work("create", [&] {
        if (state == "attached") return MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        if (g_private) return MPI_Win_create(memory, sizeof memory, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        return MPI_Win_allocate(sizeof memory, 8, MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&base), &win);
    });
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    if (state == "attached") must_work("attach", [&] { return MPI_Win_attach(win, memory, sizeof memory); });
    if (state == "fence") {
        must_work("fence", [&] { return MPI_Win_fence(0, win); });
        put(win, right);
    }
    if (state == "lock") {
        must_work("lock", [&] { return MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, win); });
        put(win, right);
    }
    if (state == "lock_all") {
        must_work("lock_all", [&] { return MPI_Win_lock_all(0, win); });
        for (int target = 0; target < g_size; ++target)
            put(win, target);
    }
    if (state == "exposed") must_work("post", [&] { return MPI_Win_post(group_of({left}), 0, win); });
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    if (argc < 2) return 1;
    g_scenario = argv[1];
    g_private = argc > 2;
    leave_in(argv[1]);
    MPI_Barrier(MPI_COMM_WORLD);
    if (std::string(argv[1]) == "stop" && g_rank == 1) ::waitpid(stop_after(0.0), nullptr, 0);
    must_work("finalize", [] { return MPI_Finalize(); });
    std::printf("survivor %d: %d checks, %d failures\n", g_rank, g_checks, g_failures);
    return g_failures == 0 ? 0 : 1;
}
