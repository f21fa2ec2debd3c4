// Programs that hang, for hang.py: one for each argument. Each rank prints "RANK r PID p" on stdout, then some of them
// begin a wait inside libosc that does not end, and the others do what keeps it from ending.
#include <osc/notify_fallback.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace {

int g_rank = 0;
int g_size = 0;
MPI_Win g_win = MPI_WIN_NULL;
std::vector<int> g_pids;

[[noreturn]] void compute() {
    volatile unsigned long steps = 0;
    for (;;)
        steps = steps + 1;
}

[[noreturn]] void sleep_on() {
    for (;;)
        ::pause();
}

[[noreturn]] void receive() {
    int nothing = 0;
    MPI_Recv(&nothing, 1, MPI_INT, g_rank, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    compute();
}

// Returns when the system shows the process in this state.
void await_state(int pid, char state) {
    const std::string name = "/proc/" + std::to_string(pid) + "/stat";
    for (std::string text; text.find(std::string(") ") + state + ' ') == std::string::npos; ::usleep(1000)) {
        std::ifstream file(name);
        std::getline(file, text);
    }
}

// Rank 0 sends a signal to the last rank, which drives the host meanwhile: no other rank needs it any more.
void signal_last(int number, char state) {
    MPI_Comm others = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, g_rank == g_size - 1 ? 1 : 0, 0, &others);
    if (g_rank == g_size - 1) receive();
    MPI_Barrier(others);
    if (g_rank == 0) ::kill(g_pids.back(), number);
    await_state(g_pids.back(), state);
}

void lock(int rank, int type = MPI_LOCK_EXCLUSIVE) {
    MPI_Win_lock(type, rank, 0, g_win);
    int value = 1;
    MPI_Put(&value, 1, MPI_INT, rank, static_cast<MPI_Aint>(g_rank), 1, MPI_INT, g_win);
    MPI_Win_flush(rank, g_win);
}

void meet() {
    MPI_Barrier(MPI_COMM_WORLD);
}

MPI_Group group_of(const std::vector<int>& ranks) {
    MPI_Group all = MPI_GROUP_NULL;
    MPI_Group some = MPI_GROUP_NULL;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some);
    return some;
}

void start_and_complete(int target = 1) {
    MPI_Win_start(group_of({target}), 0, g_win);
    int value = 1;
    MPI_Put(&value, 1, MPI_INT, target, 0, 1, MPI_INT, g_win);
    MPI_Win_complete(g_win);
}

void post_and_wait(const std::vector<int>& origins) {
    MPI_Win_post(group_of(origins), 0, g_win);
    MPI_Win_wait(g_win);
}

// The last rank has an exclusive lock of its own memory and goes on to do `then`; the others ask for it.
void last_holds(void (*then)(), bool all = false) {
    const int last = g_size - 1;
    if (g_rank == last) lock(last);
    meet();
    if (all || g_rank == last) then();
    lock(last);
}

void run(const std::string& name) {
    const int last = g_size - 1;
    if (name == "lock_cycle") {
        lock(g_rank);
        meet();
        lock((g_rank + 1) % g_size);
    } else if (name == "holder_computes") {
        last_holds(&compute);
    } else if (name == "holder_sleeps") {
        last_holds(&sleep_on);
    } else if (name == "holder_receives") {
        last_holds(&receive);
    } else if (name == "holder_stopped") {
        last_holds([] { signal_last(SIGSTOP, 'T'); }, true);
    } else if (name == "holder_killed") {
        last_holds([] { ::raise(SIGKILL); });
    } else if (name == "shared_holder") {
        if (g_rank == last) lock(last, MPI_LOCK_SHARED);
        meet();
        if (g_rank == last) compute();
        lock(last);
    } else if (name == "missing_post") {
        if (g_rank == 1) compute();
        start_and_complete();
    } else if (name == "start_without_post") {
        if (g_rank == 1) MPI_Win_fence(0, g_win);
        start_and_complete();
    } else if (name == "missing_start") {
        if (g_rank == 0) compute();
        post_and_wait({0});
    } else if (name == "missing_complete") {
        if (g_rank == 1) post_and_wait({0});
        MPI_Win_start(group_of({1}), 0, g_win);
        int value = 1;
        MPI_Put(&value, 1, MPI_INT, 1, 0, 1, MPI_INT, g_win);
        sleep_on();
    } else if (name == "origin_ahead") {
        if (g_rank == 2) post_and_wait({0, 1});
        if (g_rank == 1) compute();
        start_and_complete(2);
        start_and_complete(2);
    } else if (name == "fence_skipped") {
        if (g_rank == last) {
            MPI_Finalize();
            compute();
        }
        MPI_Win_fence(0, g_win);
    } else if (name == "fence_late") {
        if (g_rank == last) compute();
        MPI_Win_fence(0, g_win);
    } else if (name == "create_skipped") {
        if (g_rank == last) compute();
        MPI_Win other = MPI_WIN_NULL;
        MPI_Win_create(nullptr, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &other);
    } else if (name == "no_notification") {
        OSC_Win_set_num_notify(g_win, MPI_INFO_NULL, 4);
        MPI_Win_lock_all(0, g_win);
        if (g_rank == 0) OSC_Put_notify(nullptr, 0, MPI_INT, last, 0, 0, MPI_INT, 3, g_win);
        MPI_Win_flush_all(g_win);
        meet();
        if (g_rank == 1) compute();
        OSC_Win_wait_notify(g_win, 3, 2, nullptr);
    } else if (name == "flush_stopped") {
        signal_last(SIGSTOP, 'T');
        MPI_Win_lock_all(0, g_win);
        int value = 1;
        MPI_Put(&value, 1, MPI_INT, last, 0, 1, MPI_INT, g_win);
        MPI_Win_flush(last, g_win);
    } else {
        std::fprintf(stderr, "no case \"%s\"\n", name.c_str());
    }
}

}  // namespace

int main(int argc, char** argv) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &g_size);
    g_pids.resize(static_cast<std::size_t>(g_size));
    const int own = static_cast<int>(::getpid());
    MPI_Allgather(&own, 1, MPI_INT, g_pids.data(), 1, MPI_INT, MPI_COMM_WORLD);
    int* base = nullptr;
    MPI_Win_allocate(static_cast<MPI_Aint>(sizeof(int)) * g_size, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                     static_cast<void*>(&base), &g_win);
    MPI_Win_set_name(g_win, "halo");
    std::printf("RANK %d PID %d\n", g_rank, own);
    std::fflush(stdout);
    meet();
    run(argc > 1 ? argv[1] : "");
    std::fprintf(stderr, "rank %d: nothing hung\n", g_rank);
    sleep_on();
}
