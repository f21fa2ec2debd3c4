// Answers of the target service to the hang reporter.
// Build: osc_core_cold
#include <algorithm>
#include <cstring>

#include "base/clock.h"
#include "net/target/inspection.h"
#include "net/target/target_service.h"

namespace osc::net {

// A request that waits here waits for this process's lock or for its fence.
void TargetService::find_awaited(const Window& window, const sync::WaitQuestion& wait, sync::Awaited& awaited) const {
    const ExposedWindow& own = window.exposed;
    sync::WaitQuestion question = wait;
    if (question.kind == shm::WaitKind::Operations && question.target == own.rank) {
        const auto waits_in = [&](const std::deque<RankLock>& queue) {
            return std::ranges::find(queue, question.waiter, &RankLock::rank) != queue.end();
        };
        const bool fenced =
            std::ranges::any_of(window.fenced, [&](const auto& entry) { return entry.first == question.waiter; });
        if (waits_in(window.waiting) || waits_in(window.barging))
            question.kind = shm::WaitKind::Lock;
        else if (fenced)
            question.kind = shm::WaitKind::TargetFence;
    }
    sync::find_awaited(*own.controls, own.processes, question, awaited);
    if (question.kind != shm::WaitKind::Lock || question.target != own.rank) return;
    for (const RankLock& held : window.held)
        if (held.ask != LockAsk::Exclusive) awaited.add(held.rank, sync::Relation::HoldsShared);
}

void TargetService::find_awaited(std::uint64_t window, const sync::WaitQuestion& wait, sync::Awaited& awaited) const {
    if (const auto found = windows_.find(window); found != windows_.end()) find_awaited(*found->second, wait, awaited);
}

Status TargetService::inspect(Window& window, const std::byte* data, std::byte* out) const {
    const ExposedWindow& own = window.exposed;
    InspectQuestion question;
    std::memcpy(&question, data, sizeof question);
    if (own.neighbours == nullptr || question.subject >= own.processes || question.wait.waiter >= own.processes ||
        !own.controls->is_local(question.subject))
        return Status::Malformed;
    Inspection found;
    found.view = own.neighbours->process_view(question.subject);
    if (found.view.wait.kind != shm::WaitKind::None) found.view.wait.since = now_ns() - found.view.wait.since;
    find_awaited(window, question.wait, found.awaited);
    std::memcpy(out, &found, sizeof found);
    return Status::Done;
}

}  // namespace osc::net
