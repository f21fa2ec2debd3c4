// Locks for processes of other nodes: the queue at their target, and the grants.
#include <algorithm>
#include <utility>

#include "net/target/target_service.h"

namespace osc::net {
namespace {

sync::LockKind kind_of(LockAsk ask) {
    return ask == LockAsk::Exclusive ? sync::LockKind::Exclusive : sync::LockKind::Shared;
}

}  // namespace

sync::LockContext TargetService::context(Window& window, std::uint32_t origin) const {
    const ExposedWindow& own = window.exposed;
    return {.controls = *own.controls,
            .me = origin,
            .processes = own.processes,
            .liveness = *own.liveness,
            .runner = own.rank,
            .stats = own.stats};
}

// Takes the lock for `origin`; false if the request has to wait, in the queue.
bool TargetService::lock(Window& window, std::uint32_t origin, LockAsk ask, Status& status) {
    std::erase(window.refused, origin);
    const bool inside_lock_all = ask == LockAsk::Barging;
    std::deque<RankLock>& queue = inside_lock_all ? window.barging : window.waiting;
    if (queue.empty()) {
        sync::LockContext asking = context(window, origin);
        asking.inside_lock_all = inside_lock_all;
        const sync::LockReply asked = sync::lock_ask(asking, window.exposed.rank, kind_of(ask));
        if (asked == sync::LockReply::Granted) window.held.push_back({origin, ask});
        if (asked == sync::LockReply::Broken) {
            status = Status::HolderDied;
            window.refused.push_back(origin);
        }
        if (asked != sync::LockReply::Queued) return true;
        (inside_lock_all ? window.barging_queued : window.queued) = true;
    }
    if (window.exposed.stats != nullptr) window.exposed.stats->other(stats::Other::LockContended);
    queue.push_back({origin, ask});
    return false;
}

void TargetService::unlock(Window& window, std::uint32_t origin) {
    const auto held = std::ranges::find(window.held, origin, &RankLock::rank);
    if (held == window.held.end()) return;  // broken, because the origin counted as dead
    const LockAsk ask = held->ask;
    window.held.erase(held);
    sync::LockContext releasing = context(window, origin);
    if (window.turns > 0) {  // so this is an exclusive lock
        const RankLock next = window.waiting.front();
        if (sync::hand_off(releasing, window.exposed.rank, next.rank)) {
            --window.turns;
            window.waiting.pop_front();
            window.held.push_back(next);
            window.granted.push_back(next.rank);
            return;
        }
        window.turns = 0;
    }
    if (kind_of(ask) == sync::LockKind::Exclusive)
        sync::unlock_exclusive(releasing, window.exposed.rank);
    else
        sync::unlock_shared(releasing, window.exposed.rank);
}

bool TargetService::resume_granted(Window& window) {
    const std::vector<std::uint32_t> granted = std::exchange(window.granted, {});
    for (const std::uint32_t origin : granted)
        go_on(window, origin);
    return !granted.empty();
}

// The first waiter behind those whose turn is certain asks for the lock, or looks for the grant. After an exclusive
// grant, the waiters queued at that moment follow as one batch: else all processes of other nodes together would get
// one turn in each round of the node's queue.
bool TargetService::resume_queue(Window& window, std::deque<RankLock>& queue, bool& queued, std::size_t& turns) {
    if (queue.size() <= turns) return false;
    const RankLock first = queue[turns];
    sync::LockContext asking = context(window, first.rank);
    asking.inside_lock_all = first.ask == LockAsk::Barging;
    const sync::LockReply asked = queued ? sync::lock_answered(asking, window.exposed.rank)
                                         : sync::lock_ask(asking, window.exposed.rank, kind_of(first.ask));
    queued = asked == sync::LockReply::Queued;
    if (queued) return false;
    queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(turns));
    turns = 0;
    if (asked == sync::LockReply::Granted && first.ask == LockAsk::Exclusive)
        while (turns < queue.size() && queue[turns].ask == LockAsk::Exclusive)
            ++turns;
    std::deque<Saved>& saved = window.saved[first.rank];
    if (asked == sync::LockReply::Granted) window.held.push_back(first);
    if (asked == sync::LockReply::Broken) {
        window.refused.push_back(first.rank);
        if (!saved.empty() && saved.front().status == Status::Done) saved.front().status = Status::HolderDied;
    }
    go_on(window, first.rank);
    return true;
}

void TargetService::break_locks(Window& window, std::uint64_t token) {
    const ExposedWindow& own = window.exposed;
    std::erase_if(window.held, [&](const RankLock& held) {
        if (own.tokens[held.rank] != token) return false;
        window.turns = 0;
        sync::LockContext breaking = context(window, held.rank);
        sync::break_lock_of(breaking, own.rank, held.rank);
        return true;
    });
}

void TargetService::look_for_dead() {
    for (Window* window : busy_) {
        sync::LockContext looking = context(*window, window->exposed.rank);
        sync::break_if_holder_died(looking, window->exposed.rank);
    }
}

void TargetService::holders(std::vector<std::uint64_t>& tokens) const {
    for (const auto& [id, window] : windows_) {
        const ExposedWindow& own = window->exposed;
        if (window->held.empty()) continue;
        const std::uint64_t word = own.controls->block(own.rank).lock.word.load(std::memory_order_relaxed);
        if ((word & sync::kQueued) == 0 && window->waiting.empty()) continue;
        for (const RankLock& held : window->held)
            tokens.push_back(own.tokens[held.rank]);
    }
}

}  // namespace osc::net
