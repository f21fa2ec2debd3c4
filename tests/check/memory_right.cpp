// Programs whose loads and stores conflict with no operation, for OSC_CHECK=2, and what protected memory must not
// break.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "memory_epochs.h"

namespace corpus {
namespace {

volatile int g_seen = 0;

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "wrong: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

// The neighbours of the bytes that an operation accesses.
void other_bytes() {
    IntWindow window;
    int value = 1;
    const auto put = [&] { MPI_Put(&value, 1, MPI_INT, kTarget, 10, 1, MPI_INT, window); };
    const auto access = [&] {
        for (int i = 0; i < 64; ++i)
            if (i != 10) window.base()[i] += i;
        g_seen = window.base()[11] + window.base()[9];
    };
    fence_epoch(window, put, access);
    post_epoch(window, put, access);
    only(kTarget, [&] { require(window.base()[10] == 1 && window.base()[63] == 126, "values beside a put"); });
}

void after_the_epoch() {
    IntWindow window;
    int value = 3;
    const auto put = [&] { MPI_Put(&value, 1, MPI_INT, kTarget, 10, 1, MPI_INT, window); };
    MPI_Win_fence(0, window);
    only(kOrigin, put);
    MPI_Win_fence(0, window);
    only(kTarget, [&] {
        require(window.base()[10] == 3, "a put, after the fence");
        window.base()[10] = 4;
    });
    MPI_Win_fence(0, window);
    post_epoch(window, put, [] {});
    only(kTarget, [&] {
        require(window.base()[10] == 3, "a put, after the wait");
        window.base()[10] = 4;
    });
}

void loads_beside_gets() {
    IntWindow window;
    int value = 0;
    const auto get = [&] { MPI_Get(&value, 1, MPI_INT, kTarget, 10, 1, MPI_INT, window); };
    const auto load = [&] { g_seen = window.base()[10]; };
    fence_epoch(window, get, load);
    post_epoch(window, get, load);
}

// A message orders the load and the store before the operation that is called then.
void accesses_before_the_operation() {
    IntWindow window;
    int value = 1;
    int token = 0;
    const auto access = [&] {
        g_seen = window.base()[10];
        window.base()[10] = 8;
        MPI_Send(&token, 1, MPI_INT, kOrigin, 0, MPI_COMM_WORLD);
    };
    const auto put = [&] {
        MPI_Recv(&token, 1, MPI_INT, kTarget, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Put(&value, 1, MPI_INT, kTarget, 10, 1, MPI_INT, window);
    };
    MPI_Win_fence(0, window);
    only(kTarget, access);
    only(kOrigin, put);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
    const GroupOf peer(1 - rank());
    only(kTarget, [&] { MPI_Win_post(peer, 0, window); });
    only(kOrigin, [&] { MPI_Win_start(peer, 0, window); });
    only(kTarget, access);
    only(kOrigin, put);
    only(kOrigin, [&] { MPI_Win_complete(window); });
    only(kTarget, [&] { MPI_Win_wait(window); });
}

// Under locks the window's owner accesses its memory under a lock of its own.
void locks_after_a_fence() {
    IntWindow window;
    MPI_Win_fence(0, window);
    for (int round = 0; round < 3; ++round) {
        int value = 1;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, kTarget, 0, window);
        only(kOrigin, [&] { MPI_Put(&value, 1, MPI_INT, kTarget, 10, 1, MPI_INT, window); });
        only(kTarget, [&] { window.base()[10] = 5; });
        MPI_Win_unlock(kTarget, window);
    }
}

// Buffers of operations that lie in the window: libosc, and the system, read and write them.
void buffers_in_the_window() {
    IntWindow window(8192);
    IntWindow other(8192);
    int* const base = window.base();
    for (int i = 0; i < 8192; ++i)
        base[i] = rank() == kOrigin ? i : 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_fence(0, other);
    fence_epoch(
        window, [&] { MPI_Put(base, 4096, MPI_INT, kTarget, 0, 4096, MPI_INT, other); }, [] {});
    MPI_Win_fence(MPI_MODE_NOSUCCEED, other);
    only(kTarget, [&] { require(other.base()[4095] == 4095, "a put from another window"); });
}

void buffers_in_the_window_of_an_epoch() {
    IntWindow window(8192);
    int* const base = window.base();
    for (int i = 0; i < 8192; ++i)
        base[i] = rank() == kOrigin ? i : 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_fence(0, window);
    only(kOrigin, [&] { MPI_Put(base, 2000, MPI_INT, kTarget, 0, 2000, MPI_INT, window); });
    only(kOrigin, [&] { MPI_Get(base + 5000, 1000, MPI_INT, kTarget, 4000, 1000, MPI_INT, window); });
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
    only(kTarget, [&] { require(base[1999] == 1999, "a put from the window"); });
    only(kOrigin, [&] { require(base[5500] == 0 && base[4999] == 4999, "a get into the window"); });
}

// The program sees one base, which is its own mapping.
void one_base() {
    IntWindow window;
    void* base = nullptr;
    int found = 0;
    MPI_Win_get_attr(window, MPI_WIN_BASE, &base, &found);
    require(found != 0 && base == window.base(), "the attribute MPI_WIN_BASE");
    MPI_Aint bytes = 0;
    int unit = 0;
    MPI_Win_shared_query(window, rank(), &bytes, &unit, &base);
    require(bytes == 0 || base == window.base(), "MPI_Win_shared_query");
}

sigjmp_buf g_back;
int g_faults = 0;
void on_fault(int) {
    ++g_faults;
    siglongjmp(g_back, 1);
}

// A fault of the program's own reaches its handler, set before or in the epoch before.
void own_handler() {
    struct sigaction mine {};
    struct sigaction before {};
    mine.sa_handler = &on_fault;
    sigaction(SIGSEGV, &mine, &before);
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    auto* const closed = static_cast<volatile int*>(mmap(nullptr, page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    IntWindow window;
    for (int round = 0; round < 3; ++round) {
        MPI_Win_fence(0, window);
        window.base()[1] = round;
        if (sigsetjmp(g_back, 1) == 0) *closed = 1;
        window.base()[2] = round;
        if (round == 1) sigaction(SIGSEGV, &mine, nullptr);
        if (round == 1) MPI_Win_fence(0, window);
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
    require(g_faults == 3 && window.base()[1] == 2 && window.base()[2] == 2, "faults of the program's own");
    munmap(const_cast<int*>(closed), page);
    sigaction(SIGSEGV, &before, nullptr);
}

// A child process has the memory's protection, but no epoch ends it there.
void child() {
    IntWindow window;
    MPI_Win_fence(0, window);
    const pid_t made = fork();
    if (made == 0) {
        window.base()[40 + rank()] = 9;
        _exit(window.base()[40 + rank()] == 9 ? 0 : 1);
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
    int status = -1;
    require(made > 0 && waitpid(made, &status, 0) == made && status == 0, "a child process");
}

}  // namespace

#define CASE(name) \
    { #name, &name }

const std::vector<Case> kRight = {CASE(other_bytes),
                                  CASE(after_the_epoch),
                                  CASE(loads_beside_gets),
                                  CASE(accesses_before_the_operation),
                                  CASE(locks_after_a_fence),
                                  CASE(buffers_in_the_window),
                                  CASE(buffers_in_the_window_of_an_epoch),
                                  CASE(one_base),
                                  CASE(own_handler),
                                  CASE(child)};

}  // namespace corpus
