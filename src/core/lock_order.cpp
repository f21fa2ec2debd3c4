// Acquires deferred locks in order.
#include "core/lock_order.h"

#include "core/targets.h"
#include "shm/other_threads.h"

namespace osc::strategy {

constinit LockOrder g_lock_order;

// /proc/self/task has a link for each thread. While their number stays, the answer does.
bool LockOrder::is_alone() {
    struct stat tasks {};
    if (::stat("/proc/self/task", &tasks) != 0) return false;
    if (tasks.st_nlink == alone_) return true;
    if (shm::has_other_threads()) return false;
    alone_ = tasks.st_nlink;
    return true;
}

bool LockOrder::may_defer(const Core& core) {
    if (!core.threaded) return true;
    if (never_.load(std::memory_order_relaxed)) return false;
    if (is_alone()) return true;
    never_.store(true, std::memory_order_relaxed);
    return false;
}

void LockOrder::defer(Core& core, std::uint32_t rank) {
    core_ = &core;
    target_ = rank;
    state_.store(Deferred, std::memory_order_release);
}

void LockOrder::defer_or_await(Core& core, StateGuard& guard, std::uint32_t rank) {
    if (may_defer(core)) return defer(core, rank);
    guard.unlocked([&] { return core.remote_sync->await_lock(rank); });
}

void LockOrder::acquire() {
    for (std::uint32_t state = Deferred; !state_.compare_exchange_strong(state, Acquiring); state = Deferred) {
        if (state == Ended) return;
        wait_for_other_thread();
    }
    Core& core = *core_;
    {
        StateGuard guard(core);
        Target& target = core.target(target_);
        if (is_deferred(target.held_lock))
            static_cast<void>(make_ready(core, guard, target));
        else if (!core.is_local(target_))
            guard.unlocked([&] { return core.remote_sync->await_lock(target_); });
    }
    state_.store(Ended, std::memory_order_release);
}

Fault LockOrder::acquire_in(Core& core, StateGuard& guard) {
    if (!is_pending() || core_ != &core) return Fault::None;
    Target& target = core.target(target_);
    return is_deferred(target.held_lock) ? make_ready(core, guard, target) : Fault::None;
}

void LockOrder::end(Core& core, StateGuard& guard, std::uint32_t rank) {
    if (core_ != &core || target_ != rank) return;
    for (std::uint32_t state = Deferred; !state_.compare_exchange_strong(state, Ended); state = Deferred) {
        if (state == Ended) return;
        guard.unlocked(wait_for_other_thread);
    }
}

}  // namespace osc::strategy
