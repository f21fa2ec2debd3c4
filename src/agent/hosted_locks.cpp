// Locks for processes of other nodes: how they wait for them at their target, and how they get them.
#include <algorithm>
#include <utility>

#include "agent/hosted.h"

namespace osc::net {
namespace {

sync::LockKind kind_of(LockAsk ask) {
    return ask == LockAsk::Exclusive ? sync::LockKind::Exclusive : sync::LockKind::Shared;
}

}  // namespace

sync::LockContext Hosted::context(Window& window, std::uint32_t origin) const {
    const Serving& own = window.serving;
    sync::LockContext context{*own.slot, origin, own.processes, *own.liveness};
    context.runner = own.rank;
    return context;
}

// Takes the lock for `origin`; false if it has to wait, and stands in line.
bool Hosted::lock(Window& window, std::uint32_t origin, LockAsk ask, Status& status) {
    std::erase(window.refused, origin);
    const bool passing = ask == LockAsk::Passing;
    std::deque<Waiting>& queue = passing ? window.passing : window.waiting;
    if (queue.empty()) {
        sync::LockContext asking = context(window, origin);
        asking.inside_lock_all = passing;
        const sync::Asked asked = sync::lock_ask(asking, window.serving.rank, kind_of(ask));
        if (asked == sync::Asked::Granted) window.held.push_back({origin, ask});
        if (asked == sync::Asked::Broken) {
            status = Status::HolderDied;
            window.refused.push_back(origin);
        }
        if (asked != sync::Asked::Queued) return true;
        (passing ? window.passing_queued : window.queued) = true;
    }
    queue.push_back({origin, ask});
    return false;
}

void Hosted::unlock(Window& window, std::uint32_t origin) {
    const auto held =
        std::find_if(window.held.begin(), window.held.end(), [&](const Held& entry) { return entry.rank == origin; });
    if (held == window.held.end()) return;  // it was taken for dead
    const LockAsk ask = held->ask;
    window.held.erase(held);
    sync::LockContext releasing = context(window, origin);
    if (window.turns > 0) {  // so this was an exclusive one
        const Waiting next = window.waiting.front();
        if (sync::pass_on(releasing, window.serving.rank, next.rank)) {
            --window.turns;
            window.waiting.pop_front();
            window.held.push_back({next.rank, next.ask});
            window.passed.push_back(next.rank);
            return;
        }
        window.turns = 0;
    }
    if (kind_of(ask) == sync::LockKind::Exclusive)
        sync::unlock_exclusive(releasing, window.serving.rank);
    else
        sync::unlock_shared(releasing, window.serving.rank);
}

bool Hosted::resume_passed(Window& window) {
    const std::vector<std::uint32_t> passed = std::exchange(window.passed, {});
    for (const std::uint32_t origin : passed)
        go_on(window, origin);
    return !passed.empty();
}

// The first behind those whose turn is certain asks for the lock, or looks for the answer. Who gets it exclusively has
// those that wait by then follow, or a process of another node would have a share of one turn in each round of the
// queue.
bool Hosted::resume_queue(Window& window, std::deque<Waiting>& queue, bool& queued, std::size_t& turns) {
    if (queue.size() <= turns) return false;
    const Waiting first = queue[turns];
    sync::LockContext asking = context(window, first.rank);
    asking.inside_lock_all = first.ask == LockAsk::Passing;
    sync::Asked asked{};
    if (queued) {
        asked = sync::lock_answered(asking, window.serving.rank);
        if (asked == sync::Asked::Queued) return false;
        queued = false;
    } else {
        asked = sync::lock_ask(asking, window.serving.rank, kind_of(first.ask));
        if (asked == sync::Asked::Queued) {
            queued = true;
            return false;
        }
    }
    queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(turns));
    turns = 0;
    if (asked == sync::Asked::Granted && first.ask == LockAsk::Exclusive)
        while (turns < queue.size() && queue[turns].ask == LockAsk::Exclusive)
            ++turns;
    std::deque<Saved>& saved = window.saved[first.rank];
    if (asked == sync::Asked::Granted) window.held.push_back({first.rank, first.ask});
    if (asked == sync::Asked::Broken) {
        window.refused.push_back(first.rank);
        if (!saved.empty() && saved.front().status == Status::Done) saved.front().status = Status::HolderDied;
    }
    go_on(window, first.rank);
    return true;
}

void Hosted::died(std::uint64_t token) {
    for (auto& [id, window] : windows_) {
        const Serving& own = window->serving;
        for (std::size_t i = 0; i < window->held.size();) {
            const std::uint32_t rank = window->held[i].rank;
            if (own.tokens[rank] != token) {
                ++i;
                continue;
            }
            window->held.erase(window->held.begin() + static_cast<std::ptrdiff_t>(i));
            window->turns = 0;
            sync::LockContext breaking = context(*window, rank);
            sync::break_lock_of(breaking, own.rank, rank);
        }
    }
}

void Hosted::look_for_dead() {
    for (Window* window : busy_) {
        sync::LockContext looking = context(*window, window->serving.rank);
        sync::break_if_dead(looking, window->serving.rank);
    }
}

void Hosted::holders(std::vector<std::uint64_t>& tokens) const {
    for (const auto& [id, window] : windows_) {
        const Serving& own = window->serving;
        if (window->held.empty()) continue;
        const std::uint64_t word = own.slot->block(own.rank).lock.word.load(std::memory_order_relaxed);
        if ((word & sync::kQueued) == 0 && window->waiting.empty()) continue;
        for (const Held& held : window->held)
            tokens.push_back(own.tokens[held.rank]);
    }
}

}  // namespace osc::net
