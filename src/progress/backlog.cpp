#include "progress/backlog.h"

#include "base/fault.h"

namespace osc::progress {

void Backlog::enlist(DeferredWork& work) {
    const std::lock_guard lock(mutex_);
    base::insist([&] { work_.push_back(&work); });
    // In one order with the events that the caller looks for after this.
    count_.store(work_.size(), std::memory_order_seq_cst);
}

void Backlog::withdraw(DeferredWork& work) {
    const std::lock_guard lock(mutex_);
    std::erase(work_, &work);
    count_.store(work_.size(), std::memory_order_relaxed);
}

bool Backlog::resume(bool& again) {
    again = false;
    if (count_.load(std::memory_order_seq_cst) == 0) return false;
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) {
        // The other thread may have passed the work that this thread's events let go on.
        again = true;
        soon_.store(true, std::memory_order_seq_cst);
        return false;
    }
    soon_.store(false, std::memory_order_relaxed);
    std::erase_if(work_, [&](DeferredWork* work) {
        const DeferredWork::Left left = work->resume();
        again = again || left == DeferredWork::Left::Busy;
        return left == DeferredWork::Left::Nothing;
    });
    count_.store(work_.size(), std::memory_order_relaxed);
    if (again) soon_.store(true, std::memory_order_seq_cst);
    return true;
}

}  // namespace osc::progress
