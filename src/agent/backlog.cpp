// The backlog: work of streams that an event of the network lets go on. Every thread that drives resumes all of it, so
// that a thread which waits for one operation blocks no other.
//
// Locks: `backlog_mutex_` comes behind a stream's mutex in enlist(), and before it in resume_backlog(), where streams
// are only tried.
#include <algorithm>

#include "agent/network.h"

namespace osc::net {

void Network::enlist(Backlog& work) {
    const std::lock_guard lock(backlog_mutex_);
    backlog_.push_back(&work);
    // In one order with the events that the caller looks for after this.
    backlog_count_.store(backlog_.size(), std::memory_order_seq_cst);
}

void Network::withdraw(Backlog& work) {
    const std::lock_guard lock(backlog_mutex_);
    std::erase(backlog_, &work);
    backlog_count_.store(backlog_.size(), std::memory_order_relaxed);
}

bool Network::resume_backlog() {
    if (backlog_count_.load(std::memory_order_seq_cst) == 0) return false;
    const auto again_soon = [&] {
        resume_soon_.store(true, std::memory_order_seq_cst);
        if (asleep_.load(std::memory_order_seq_cst)) endpoint_->wake();
    };
    const std::unique_lock lock(backlog_mutex_, std::try_to_lock);
    if (!lock.owns_lock()) {
        again_soon();  // the other thread may be past what this thread's events let go on
        return false;
    }
    resume_soon_.store(false, std::memory_order_relaxed);
    bool busy = false;
    std::erase_if(backlog_, [&](Backlog* work) {
        const Backlog::Left left = work->resume();
        busy = busy || left == Backlog::Left::Busy;
        return left == Backlog::Left::Nothing;
    });
    backlog_count_.store(backlog_.size(), std::memory_order_relaxed);
    if (busy) again_soon();
    return true;
}

}  // namespace osc::net
