// What interrupts a call that concerns adopted memory (adopt.cpp): a fork of another thread, a signal handler that
// forks, a cancellation, a small stack.
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <mutex>
#include <thread>

#include "adopt.h"

using namespace adopt;

namespace {

// A malloc that keeps its lock while it calls the system, and takes it around a fork. Its handlers are registered
// before any library's, as those of a malloc are that the program is linked to: they prepare last.
struct Allocator {
    std::mutex lock;
    std::atomic<bool> forks{false};      // take part in the next fork
    std::atomic<bool> preparing{false};  // the forking thread waits for the lock, or soon will
};
Allocator g_allocator;

void prepare() {
    if (!g_allocator.forks) return;
    g_allocator.preparing = true;
    g_allocator.lock.lock();
}
void after() {
    if (g_allocator.forks) g_allocator.lock.unlock();
}
void register_early() {
    ::pthread_atfork(prepare, after, after);
}
__attribute__((section(".preinit_array"), used)) void (*const g_early)() = register_early;

// A joined thread stays in the system's list for a moment, and keeps memory private as long.
class Tasks {
  public:
    Tasks() : before_(count()) {}
    ~Tasks() {
        while (count() > before_)
            std::this_thread::yield();
    }
    Tasks(const Tasks&) = delete;
    Tasks& operator=(const Tasks&) = delete;

  private:
    static std::ptrdiff_t count() {
        const std::filesystem::directory_iterator tasks("/proc/self/task");
        return std::distance(begin(tasks), end(tasks));
    }
    std::ptrdiff_t before_;
};

bool exits_with_zero(pid_t child) {
    int status = -1;
    return ::waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace

CASE(an_allocator_in_a_system_call_does_not_stop_a_fork) {
    const Tasks tasks;
    auto* const memory = static_cast<char*>(map_pages(kLarge));
    auto* const between = static_cast<char*>(map_pages(kEnough));
    auto* const other = static_cast<char*>(map_pages(kLarge));
    std::memset(memory, 4, kLarge);
    std::memset(other, 5, kLarge);
    std::memset(between, 6, kEnough);
    adopt_once(memory, kLarge);
    adopt_once(other, kLarge);
    const long long with = arena_bytes();
    std::atomic<bool> locked{false};
    std::thread thread([&] {
        const std::lock_guard lock(g_allocator.lock);
        locked = true;
        while (!g_allocator.preparing)
            std::this_thread::yield();
        CHECK_EQ(::madvise(between, kEnough, MADV_DONTNEED), 0);
        CHECK_EQ(::madvise(memory, kLarge / 2, MADV_DONTNEED), 0);
        CHECK_EQ(::munmap(other, kLarge / 2), 0);
        void* const moved = ::mremap(other + kLarge / 2, kLarge / 2, kLarge, MREMAP_MAYMOVE);
        CHECK(moved != MAP_FAILED && static_cast<char*>(moved)[7] == 5);
        ::munmap(moved, kLarge);
    });
    while (!locked)
        std::this_thread::yield();
    g_allocator.forks = true;
    const pid_t child = ::fork();
    if (child == 0) ::_exit(memory[kLarge / 2] == 4 && memory[kLarge - 1] == 4 && between[0] == 0 ? 0 : 1);
    g_allocator.forks = g_allocator.preparing = false;
    thread.join();
    CHECK(child > 0);
    CHECK(exits_with_zero(child));
    // What was unmapped during the fork went back after it. Before a load takes memory for the pages that read as zero.
    CHECK(arena_bytes() <= with - static_cast<long long>(kLarge + kLarge / 2 - kEnough));
    CHECK_ALL(memory, kLarge, [](std::size_t i) { return i < kLarge / 2 ? 0 : 4; });
    ::munmap(memory, kLarge);
    ::munmap(between, kEnough);
}

// The child has what the other thread mapped in the place of adopted memory while the copies were made.
CASE(a_child_keeps_what_replaced_adopted_memory) {
    const Tasks tasks;
    auto* const memory = static_cast<char*>(map_pages(kLarge));
    std::memset(memory, 4, kLarge);
    adopt_once(memory, kLarge);
    std::atomic<bool> locked{false};
    std::thread thread([&] {
        const std::lock_guard lock(g_allocator.lock);
        locked = true;
        while (!g_allocator.preparing)
            std::this_thread::yield();
        CHECK(::mmap(memory, kLarge / 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
              memory);
        std::memset(memory, 9, kLarge / 2);
    });
    while (!locked)
        std::this_thread::yield();
    g_allocator.forks = true;
    const pid_t child = ::fork();
    if (child == 0) ::_exit(memory[0] == 9 && memory[kLarge / 2] == 4 && memory[kLarge - 1] == 4 ? 0 : 1);
    g_allocator.forks = g_allocator.preparing = false;
    thread.join();
    CHECK(child > 0);
    CHECK(exits_with_zero(child));
    ::munmap(memory, kLarge);
}

namespace {

std::atomic<int> g_raise{0};  // the signal that the next lseek of libosc raises
std::atomic<int> g_good_children{0};

void fork_in_handler(int) {
    const int error = errno;
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    if (child > 0 && exits_with_zero(child)) ++g_good_children;
    errno = error;
}

}  // namespace

// libosc calls this one, because the program exports it.
extern "C" __attribute__((visibility("default"))) off_t lseek(int fd, off_t offset, int whence) noexcept {
    if (const int signal = g_raise.exchange(0); signal != 0) ::raise(signal);
    return ::syscall(SYS_lseek, fd, offset, whence);
}

CASE(a_signal_handler_forks_during_a_sweep) {
    struct sigaction action = {}, before = {};
    action.sa_handler = fork_in_handler;
    CHECK_EQ(::sigaction(SIGUSR1, &action, &before), 0);
    g_good_children = 0;
    auto* const memory = static_cast<char*>(map_pages(kLarge));
    std::memset(memory, 4, kLarge);
    adopt_once(memory, kLarge);
    g_raise = SIGUSR1;
    CHECK_EQ(::munmap(memory, kLarge / 2), 0);
    CHECK_EQ(g_raise.load(), 0);  // the signal was raised within munmap, and handled before it returned
    CHECK_EQ(g_good_children.load(), 1);
    CHECK_ALL(memory + kLarge / 2, kLarge / 2, [](std::size_t) { return 4; });
    ::munmap(memory + kLarge / 2, kLarge / 2);
    ::sigaction(SIGUSR1, &before, nullptr);
}

// munmap and madvise are no cancellation points; what libosc does in them must not be one.
CASE(a_cancelled_thread_finishes_its_calls) {
    const Tasks tasks;
    auto* const memory = static_cast<char*>(map_pages(kLarge));
    std::memset(memory, 4, kLarge);
    adopt_once(memory, kLarge);
    struct Calls {
        char* memory;
        bool done = false;
    } calls{memory};
    pthread_t thread{};
    const auto run = [](void* argument) -> void* {
        auto& todo = *static_cast<Calls*>(argument);
        ::pthread_cancel(::pthread_self());
        ::madvise(todo.memory, kEnough, MADV_DONTNEED);
        ::munmap(todo.memory + kLarge / 2, kLarge / 2);
        todo.done = true;
        ::pthread_testcancel();
        return nullptr;
    };
    CHECK_EQ(::pthread_create(&thread, nullptr, run, &calls), 0);
    void* result = nullptr;
    CHECK_EQ(::pthread_join(thread, &result), 0);
    CHECK(calls.done && result == PTHREAD_CANCELED);
    CHECK(memory[0] == 0 && memory[kEnough] == 4);
    ::munmap(memory, kLarge / 2);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
namespace {

ucontext_t g_main, g_small;
char* g_memory = nullptr;

void unmap_on_small_stack() {
    ::madvise(g_memory, kEnough, MADV_DONTNEED);
    ::munmap(g_memory + kLarge / 2, kLarge / 2);
}

}  // namespace

CASE(calls_need_little_stack) {
    constexpr std::size_t kStack = std::size_t{16} << 10, kGuard = std::size_t{1} << 20;
    g_memory = static_cast<char*>(map_pages(kLarge));
    std::memset(g_memory, 4, kLarge);
    adopt_once(g_memory, kLarge);
    auto* const stack = static_cast<char*>(map_pages(kGuard + kStack));
    CHECK_EQ(::mprotect(stack, kGuard, PROT_NONE), 0);
    CHECK_EQ(::getcontext(&g_small), 0);
    g_small.uc_stack.ss_sp = stack + kGuard;
    g_small.uc_stack.ss_size = kStack;
    g_small.uc_link = &g_main;
    ::makecontext(&g_small, unmap_on_small_stack, 0);
    CHECK_EQ(::swapcontext(&g_main, &g_small), 0);
    CHECK(g_memory[0] == 0 && g_memory[kEnough] == 4);
    ::munmap(g_memory, kLarge / 2);
    ::munmap(stack, kGuard + kStack);
}
#endif
