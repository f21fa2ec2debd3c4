// What a job decides about its waits, which OSC_VERBOSE=strategy prints: the launcher's binding counts, the masks that
// threads have by the time of the first window do not. CMakeLists.txt has the bindings and the lines.
#include <sched.h>

#include <thread>

#include "harness.h"

OSCT_PROGRAM(MPI_THREAD_SERIALIZED, "MPI_Win_allocate", "MPI_Win_fence", "MPI_Win_free")

static void use_a_window(MPI_Comm comm = MPI_COMM_WORLD) {
    int* memory = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    CHECK_OK(MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &memory, &win));
    CHECK_OK(MPI_Win_fence(0, win));
    CHECK_OK(MPI_Win_free(&win));
}

// Sets the calling thread's mask; false if the machine does not have the cores.
static bool run_on(int first, int last) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    for (int core = first; core <= last; ++core)
        CPU_SET(core, &cores);
    return ::sched_setaffinity(0, sizeof cores, &cores) == 0;
}

CASE(as_launched) {
    use_a_window();
}

CASE(the_main_thread_has_moved_to_core_0) {
    CHECK(run_on(0, 0));
    use_a_window();
}

CASE(the_main_thread_may_run_everywhere) {
    CHECK(run_on(0, 1));
    use_a_window();
}

CASE(a_thread_on_core_0_creates_the_window) {
    std::thread([] {
        CHECK(run_on(0, 0));
        use_a_window();
    }).join();
}

CASE(each_process_by_itself) {
    use_a_window(MPI_COMM_SELF);
}
