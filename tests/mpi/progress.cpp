// Passive-target progress: an origin finishes every kind of operation while its target computes outside MPI.
// The host alone waits for the target, so each case runs with libosc only.
#include <sys/mman.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Put", "MPI_Get", "MPI_Accumulate", "MPI_Get_accumulate", "MPI_Fetch_and_op",
             "MPI_Compare_and_swap", "MPI_Win_lock", "MPI_Win_unlock", "MPI_Win_flush", "MPI_Win_lock_all",
             "MPI_Win_unlock_all", "MPI_Win_flush_local", "MPI_Win_flush_local_all")

namespace {

constexpr int kInts = 20000;

// A program that watches its pages, as incremental collectors and checkpoints do. Its threads have 1 MiB of
// thread-local variables.
constexpr std::size_t kPage = 4096;
char* g_watched = nullptr;
thread_local volatile char t_large[1 << 20];

void open_page(int, siginfo_t* fault, void*) {
    const auto offset = static_cast<std::size_t>(static_cast<char*>(fault->si_addr) - g_watched);
    if (offset >= 4 * kPage) std::_Exit(9);
    t_large[offset] = 1;
    ::mprotect(g_watched + offset / kPage * kPage, kPage, PROT_READ | PROT_WRITE);
}

bool blocks(const std::filesystem::path& task, int signal) {
    std::ifstream status(task / "status");
    std::string word;
    while (status >> word && word != "SigBlk:")
        continue;
    status >> word;
    return (std::stoull(word, nullptr, 16) >> (signal - 1) & 1) != 0;
}

// The last rank computes until rank 0 has finished an operation on it.
template <class F>
void while_target_computes(F operation) {
    SKIP_IF(size() < 2);
    HOST_CANNOT("the host needs the target inside MPI");
    const int target = size() - 1;
    for (WindowKind kind : kAllWindowKinds) {
        Window win(kind, kInts * sizeof(int));
        osct::while_one_computes(target, [&] {
            if (rank() != 0) return;
            MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
            operation(win, target);
            MPI_Win_unlock(target, win);
        });
    }
}

}  // namespace

CASE(put_and_get) {
    while_target_computes([](const Window& win, int target) {
        std::vector<int> out(kInts, 4), in(kInts, 0);
        MPI_Put(out.data(), kInts, MPI_INT, target, win.at(target, 0), kInts, MPI_INT, win);
        MPI_Win_flush(target, win);
        MPI_Get(in.data(), kInts, MPI_INT, target, win.at(target, 0), kInts, MPI_INT, win);
        MPI_Win_flush(target, win);
        CHECK_ALL(in.data(), in.size(), [](std::size_t) { return 4; });
    });
}

CASE(accumulates) {
    while_target_computes([](const Window& win, int target) {
        std::vector<int> ones(kInts, 1), in(kInts, 0);
        int old = -1, seen = -1;
        const int zero = 0;
        MPI_Accumulate(ones.data(), kInts, MPI_INT, target, win.at(target, 0), kInts, MPI_INT, MPI_SUM, win);
        MPI_Get_accumulate(ones.data(), kInts, MPI_INT, in.data(), kInts, MPI_INT, target, win.at(target, 0), kInts,
                           MPI_INT, MPI_SUM, win);
        MPI_Fetch_and_op(&zero, &old, MPI_INT, target, win.at(target, 0), MPI_REPLACE, win);
        MPI_Compare_and_swap(&zero, &zero, &seen, MPI_INT, target, win.at(target, 0), win);
        MPI_Win_flush(target, win);
        CHECK_ALL(in.data(), in.size(), [](std::size_t) { return 1; });
        CHECK_EQ(old, 2);
        CHECK_EQ(seen, 0);
    });
}

CASE(derived_datatypes) {
    while_target_computes([](const Window& win, int target) {
        MPI_Datatype type;
        MPI_Type_vector(1000, 3, 7, MPI_INT, &type);
        MPI_Type_commit(&type);
        std::vector<int> out(kInts, 9), in(kInts, -1);
        MPI_Put(out.data(), 1, type, target, win.at(target, 0), 1, type, win);
        MPI_Win_flush(target, win);
        MPI_Type_free(&type);
        MPI_Get(in.data(), kInts, MPI_INT, target, win.at(target, 0), kInts, MPI_INT, win);
        MPI_Win_flush(target, win);
        CHECK_ALL(in.data(), in.size(), [](std::size_t i) { return i < 7000 && i % 7 < 3 ? 9 : 0; });
    });
}

// An operation is enabled with the synchronisation call that follows it, at the latest, and then completes without
// further RMA calls of its origin (12.7.3). MPI_Win_flush_local is such a call: rank 0 makes no other until the data
// has arrived.
CASE_BY_KIND(flush_local_sends) {
    SKIP_IF(size() < 2);
    HOST_CANNOT("the host may keep the operation until MPI_Win_unlock_all");
    const int target = size() - 1;
    if (kind == WindowKind::Shared && !osct::shares_memory(MPI_COMM_WORLD)) return;
    Window win(kind, sizeof(int));
    MPI_Win_lock_all(0, win);
    for (int value = 1; value <= 4; ++value) {
        int came = 0;
        if (rank() == 0) {
            if (value % 2 == 0)
                MPI_Put(&value, 1, MPI_INT, target, win.at(target, 0), 1, MPI_INT, win);
            else
                MPI_Accumulate(&value, 1, MPI_INT, target, win.at(target, 0), 1, MPI_INT, MPI_REPLACE, win);
            if (value <= 2)
                MPI_Win_flush_local(target, win);
            else
                MPI_Win_flush_local_all(win);
        }
        if (rank() == target)
            for (const double begin = osct::now(); came != value && osct::now() - begin < 5;) {
                MPI_Fetch_and_op(&value, &came, MPI_INT, target, win.at(target, 0), MPI_NO_OP, win);
                MPI_Win_flush(target, win);
            }
        MPI_Bcast(&came, 1, MPI_INT, target, MPI_COMM_WORLD);
        CHECK_EQ(came, value);
    }
    MPI_Win_unlock_all(win);
}

// Targets wait in the host and in libosc, compute, and are origins themselves, in turn: each operation counts once,
// whichever thread or system call executes it.
CASE_BY_KIND(operations_on_targets_that_wait_and_compute) {
    constexpr int kRounds = 200;
    constexpr int kPieces = 8;
    Window win(kind, 3 * kPieces * sizeof(int));
    std::minstd_rand random(static_cast<unsigned>(rank()) + 1);
    std::vector<int> made(static_cast<std::size_t>(size())), all(made);
    const std::vector<int> ones(kPieces, 1);
    MPI_Datatype pieces;
    MPI_Type_vector(kPieces, 1, 3, MPI_INT, &pieces);
    MPI_Type_commit(&pieces);
    MPI_Win_lock_all(0, win);
    for (int round = 0; round < kRounds; ++round) {
        for (auto left = random() % 20; left > 0; --left) {
            const int target = static_cast<int>(random() % made.size());
            int old = 0;
            ++made[static_cast<std::size_t>(target)];
            if (left % 3 == 0)
                MPI_Accumulate(ones.data(), kPieces, MPI_INT, target, win.at(target, 0), 1, pieces, MPI_SUM, win);
            else
                MPI_Fetch_and_op(ones.data(), &old, MPI_INT, target, win.at(target, 0), MPI_SUM, win);
            if (left % 2 == 0) MPI_Win_flush(target, win);
        }
        if (random() % 4 == 0) osct::compute(20e-6);
        if (round % 10 == 9) MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_flush_all(win);
    MPI_Allreduce(made.data(), all.data(), size(), MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Win_sync(win);
    CHECK_EQ(win.base<int>()[0], all[static_cast<std::size_t>(rank())]);
    MPI_Win_unlock_all(win);
    MPI_Type_free(&pieces);
    MPI_Barrier(MPI_COMM_WORLD);
}

// A store of libosc's threads to a page that the target protects runs the target's handler, and so does the store of a
// thread of the program. These threads run no handler of a signal that another thread or process sends.
CASE(a_handler_opens_pages_that_the_target_watches) {
    HOST_CANNOT("the program has no thread of libosc");
    g_watched =
        static_cast<char*>(::mmap(nullptr, 4 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    struct sigaction handler = {};
    struct sigaction before = {};
    handler.sa_sigaction = open_page;
    handler.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigaction(SIGSEGV, &handler, &before);
    MPI_Win win;
    MPI_Win_create(g_watched, 4 * kPage, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    ::mprotect(g_watched, 4 * kPage, PROT_READ);
    MPI_Barrier(MPI_COMM_WORLD);
    const long value = 7;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right(), 0, win);
    const int put = MPI_Put(&value, 1, MPI_LONG, right(), kPage, 1, MPI_LONG, win);
    const int add = MPI_Accumulate(&value, 1, MPI_LONG, right(), 3 * kPage, 1, MPI_LONG, MPI_SUM, win);
    // Where the origin itself writes to the target, the system knows no handler.
    const int ended = MPI_Win_unlock(right(), win);
    const bool refused = put != MPI_SUCCESS || add != MPI_SUCCESS || ended != MPI_SUCCESS;
    const char* const settings = std::getenv("OSC_DEBUG");
    const bool by_agent = settings != nullptr && std::strstr(settings, "cma=off") != nullptr;
    CHECK(!refused || (osct::same_node(right()) && !by_agent));
    MPI_Win_free(&win);
    ::sigaction(SIGSEGV, &before, nullptr);
    if (by_agent || !osct::same_node(left()))
        for (const std::size_t page : {1, 3})
            CHECK_EQ(static_cast<int>(g_watched[page * kPage]), 7);
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        std::string name;
        std::ifstream(task.path() / "comm") >> name;
        if (name.starts_with("osc-")) CHECK(blocks(task.path(), SIGPROF) && !blocks(task.path(), SIGBUS));
    }
    ::munmap(g_watched, 4 * kPage);
}
