// Acquires deferred locks in order.
#include "strategy/deferred_lock.h"

#include <algorithm>
#include <ctime>
#include <memory>

#include "base/inject.h"
#include "strategy/targets.h"

namespace osc::strategy {

constinit thread_local bool t_lock_deferred = false;

namespace {

using State = DeferredLock::State;

// The lock that t_lock_deferred refers to; null in a thread that never defers. The destructor empties it, because
// static destructors may still call MPI after the main thread's thread_local ones.
struct LastLock {
    std::shared_ptr<DeferredLock> lock;
    ~LastLock() { lock.reset(); }
};
thread_local LastLock t_last;

auto find(Core& core, std::uint32_t target) {
    std::vector<std::shared_ptr<DeferredLock>>& locks = core.epoch.deferred_locks;
    return std::find_if(locks.begin(), locks.end(), [&](const auto& lock) { return lock->target == target; });
}

// Another thread is acquiring the lock. That thread drives the network, this one drives the host.
int yield_to_other_thread() {
    const base::WaitScope waits;
    shm::poll_host();
    const timespec moment{0, 50000};
    return ::nanosleep(&moment, nullptr);
}

}  // namespace

void defer_lock(Core& core, std::uint32_t target) {
    // The window usually holds no reference to the last lock any more; the object is then reused.
    if (t_last.lock == nullptr || t_last.lock.use_count() != 1) t_last.lock = std::make_shared<DeferredLock>();
    t_last.lock->core = &core;
    t_last.lock->target = target;
    t_last.lock->state.store(State::Deferred, std::memory_order_release);
    core.epoch.deferred_locks.push_back(t_last.lock);
    t_lock_deferred = true;
}

void acquire_deferred_lock() {
    if (!t_lock_deferred || OSC_FAULT(lock_order_ignored)) return;
    t_lock_deferred = false;
    DeferredLock& lock = *t_last.lock;
    State deferred = State::Deferred;
    if (!lock.state.compare_exchange_strong(deferred, State::Acquiring, std::memory_order_acq_rel)) return;
    Core& core = *lock.core;
    {
        StateGuard guard(core);
        Peer& peer = core.peer(lock.target);
        if (is_deferred(peer.held_lock))
            static_cast<void>(make_ready(core, guard, peer));
        else if (!core.is_local(lock.target))
            guard.unlocked([&] { return core.remote_sync->await_lock(lock.target); });
        core.epoch.deferred_locks.erase(find(core, lock.target));
    }
    lock.state.store(State::Ended, std::memory_order_release);
}

Fault acquire_deferred_locks(Core& core, StateGuard& guard) {
    const std::vector<std::shared_ptr<DeferredLock>> locks = core.epoch.deferred_locks;
    for (const auto& lock : locks) {
        Peer& peer = core.peer(lock->target);
        if (!is_deferred(peer.held_lock)) continue;
        if (const Fault fault = make_ready(core, guard, peer); fault != Fault::None) return fault;
    }
    return Fault::None;
}

void end_deferred_lock(Core& core, StateGuard& guard, std::uint32_t target) {
    for (;;) {
        const auto found = find(core, target);
        if (found == core.epoch.deferred_locks.end()) return;
        State deferred = State::Deferred;
        if ((*found)->state.compare_exchange_strong(deferred, State::Ended, std::memory_order_acq_rel)) {
            if (*found == t_last.lock) t_lock_deferred = false;
            core.epoch.deferred_locks.erase(found);
            return;
        }
        guard.unlocked(yield_to_other_thread);
    }
}

}  // namespace osc::strategy
