// The one wait loop of libosc (invariant I3): bounded spin, then yield, then timed sleep on a futex; each round past
// the spin drives the host MPI once and, now and then, looks whether the peer that is waited for still lives.
#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

#include "transport/shm/futex.h"

namespace osc::shm {

/// How this process waits.
struct WaitPolicy {
    int spin = 2000;               // polls before the first yield
    int yields = 50;               // yields before the first sleep
    long sleep_ms = 10;            // longest timed sleep; 0: until woken
    void (*progress)() = nullptr;  // drives the host MPI once; null in unit tests and in the agent
    void (*network)() = nullptr;   // drives libosc's own network once; null where there is none
};

/// Read by every wait; set at start and, by the host room, when a window has more ranks on the node than those before.
/// Thread-safe: a wait under way may see some of the old values.
WaitPolicy wait_policy();
void set_wait_policy(const WaitPolicy& policy);
/// Sets `network` alone, which set_wait_policy() leaves as it is.
void set_wait_network(void (*drive)());

/// Drives the host's progress once (I3): a program may poll with flush, sync, test or unlock for something that a peer
/// does only after having received a message of this process.
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

/// Where a waiter sleeps: `word` changes (or is woken) when the condition may have become true, and notifiers look at
/// `sleepers` after their own read-modify-write, so that either they see the sleeper or it sees their change.
struct Doorbell {
    std::atomic<std::uint32_t> word{0};
    std::atomic<std::uint32_t> sleepers{0};

    /// Called by a notifier after a seq_cst read-modify-write of the state that the condition reads.
    void ring() {
        if (sleepers.load(std::memory_order_seq_cst) == 0) return;
        word.fetch_add(1, std::memory_order_seq_cst);
        futex_wake(word);
    }
};

/// Timed: of a wait whose condition may come true without a ring for a moment after it began.
enum class FirstSleep { AsAll, Timed };

/// Past the spin: yields and sleeps until `done()` or `dead()` (a liveness check, called about every 100 ms of
/// sleeping) is true. Returns true if done.
template <class Done, class Dead>
bool wait_slow(Doorbell& bell, Done&& done, Dead&& dead, FirstSleep first = FirstSleep::AsAll) {
    const WaitPolicy policy = wait_policy();
    for (int i = 0; i < policy.yields; ++i) {
        if (done()) return true;
        if (policy.network != nullptr) policy.network();
        if (policy.progress != nullptr) policy.progress();
        if (done()) return true;
        ::sched_yield();
    }
    long slept = 0;
    for (long ms = 1;; ms = std::min(ms * 2, std::max(policy.sleep_ms, 1L))) {
        const std::uint32_t seen = bell.word.load(std::memory_order_seq_cst);
        bell.sleepers.fetch_add(1, std::memory_order_seq_cst);
        const bool ready = done();
        const bool timed = policy.sleep_ms > 0 || std::exchange(first, FirstSleep::AsAll) == FirstSleep::Timed;
        if (!ready) futex_wait(bell.word, seen, timed ? ms : 0);
        bell.sleepers.fetch_sub(1, std::memory_order_seq_cst);
        if (ready || done()) return true;
        if (policy.progress != nullptr) policy.progress();
        slept += ms;
        if (slept >= 100) {
            slept = 0;
            if (dead()) return done();
        }
    }
}

/// Waits until `done()`. `dead()` as above. Returns false only if the wait was given up because a peer died.
template <class Done, class Dead>
inline bool wait_until(Doorbell& bell, Done&& done, Dead&& dead, FirstSleep first = FirstSleep::AsAll) {
    void (*const network)() = wait_policy().network;
    for (int i = wait_policy().spin; i > 0; --i) {
        if (done()) return true;
        // A look at the network is a system call or two: now and then, so that memory is looked at all the time.
        if (network != nullptr && i % 8 == 0)
            network();
        else
            cpu_relax();
    }
    return wait_slow(bell, done, dead, first);
}

}  // namespace osc::shm
