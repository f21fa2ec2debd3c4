// The wait loop of libosc (invariant I3): a bounded spin, then yields, then timed sleeps on a futex. Each round past
// the spin drives the host MPI once; now and then a round tests whether the awaited peer lives.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

#include "base/function_ref.h"
#include "shm/activity.h"

namespace osc::shm {

/// How this process waits.
struct WaitPolicy {
    int spin = 2000;               // polls before the first yield
    int yields = 50;               // yields before the first sleep
    long sleep_ms = 10;            // longest timed sleep; 0: until woken
    void (*progress)() = nullptr;  // drives the host MPI once; null in unit tests and in the agent
    void (*network)() = nullptr;   // drives libosc's own network once; null if there is none
};

/// What a waiting process does for processes of its node: `serve`, often, or now and then while it returns true,
/// because nothing has come for long; and `leave`, when the wait ends or sleeps.
struct WaitService {
    bool (*serve)() = nullptr;
    void (*leave)() = nullptr;
};

/// Every wait reads it. Set at start and, by the host room, with each new team.
/// Thread-safe: a wait in progress may see some of the old values.
WaitPolicy wait_policy();
void set_wait_policy(const WaitPolicy& policy);
/// Sets `network` alone, which set_wait_policy() leaves as it is.
void set_wait_network(void (*drive)());
void set_wait_service(const WaitService& service);
/// Calls `serve`, for a thread that waits elsewhere: its wait may end unseen. Returns what `serve` does.
bool serve_peers();

/// Drives the host's progress once (I3). A program may poll with flush, sync, test or unlock until a peer acts, and the
/// peer may act only after it has received a message of this process.
inline void poll_host() {
    if (void (*const progress)() = wait_policy().progress; progress != nullptr) progress();
}

inline void cpu_relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield" ::: "memory");
#endif
}

// Futexes on words in shared mappings. Shared (not PRIVATE) because the waiter may be in another process.
static_assert(sizeof(std::atomic<std::uint32_t>) == 4 && std::atomic<std::uint32_t>::is_always_lock_free);

/// Sleeps while `word` holds `expected`, at most `milliseconds` (<= 0: without limit). May return early.
inline void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, long milliseconds) {
    const timespec limit{milliseconds / 1000, milliseconds % 1000 * 1000000};
    ::syscall(SYS_futex, &word, FUTEX_WAIT, expected, milliseconds > 0 ? &limit : nullptr, nullptr, 0);
}

/// Wakes all threads that sleep on `word`.
inline void futex_wake(std::atomic<std::uint32_t>& word) {
    ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

/// The futex on which waiters sleep. A notifier changes and wakes `word` when the condition may have become true. It
/// reads `sleepers` after its own read-modify-write of the state, so either it sees the sleeper, or the sleeper sees
/// the new state.
struct Doorbell {
    std::atomic<std::uint32_t> word{0};
    std::atomic<std::uint32_t> sleepers{0};

    /// Called by a notifier after a seq_cst read-modify-write of the state that the condition reads.
    void ring() {
        if (sleepers.load(std::memory_order_seq_cst) == 0) return;
        word.fetch_add(1, std::memory_order_seq_cst);
        futex_wake(word);
    }

    /// Sleeps once, at most so long (0: without limit), unless done(); returns what that was. May return early.
    bool sleep(base::FunctionRef<bool()> done, long milliseconds) {
        const std::uint32_t seen = word.load(std::memory_order_seq_cst);
        sleepers.fetch_add(1, std::memory_order_seq_cst);
        const bool ready = done();
        if (!ready) futex_wait(word, seen, milliseconds);
        sleepers.fetch_sub(1, std::memory_order_seq_cst);
        return ready;
    }
};

/// Timed: for a wait whose condition may become true without a ring shortly after the wait begins.
enum class FirstSleep { Unlimited, Timed };

/// Waits until done() or dead() is true. dead() is a liveness check, called after about every 100 ms of sleep. Returns
/// false only if dead() ended the wait.
bool wait_until(Doorbell& bell, base::FunctionRef<bool()> done, base::FunctionRef<bool()> dead,
                FirstSleep first = FirstSleep::Unlimited);
/// The same without the spin.
bool wait_slow(Doorbell& bell, base::FunctionRef<bool()> done, base::FunctionRef<bool()> dead,
               FirstSleep first = FirstSleep::Unlimited);

}  // namespace osc::shm
