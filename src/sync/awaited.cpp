#include "sync/awaited.h"

#include "sync/lock.h"

namespace osc::sync {
namespace {

using shm::ControlBlock;
using shm::ControlTable;

template <class Visit>
void for_each_local(const ControlTable& controls, std::uint32_t processes, Visit&& visit) {
    for (std::uint32_t index = 0; index < controls.local_count(processes); ++index) {
        const std::uint32_t rank = controls.rank_at(index);
        visit(rank, controls.block(rank));
    }
}

bool has(const std::atomic<std::uint64_t>& bits, std::uint32_t rank) {
    return (bits.load(std::memory_order_acquire) & ControlBlock::bit(rank)) != 0;
}

void find_holders(const ControlTable& controls, std::uint32_t processes, std::uint32_t target, Awaited& awaited) {
    if (target >= processes || !controls.is_local(target)) return;  // a question from another node may name any rank
    const std::uint64_t word = controls.block(target).lock.word.load(std::memory_order_acquire);
    const auto number = static_cast<std::uint32_t>(word & kCountMask);
    if ((word & kExclusive) != 0) {
        if (number - 1 < processes) awaited.add(number - 1, Relation::HoldsExclusive);
        return;
    }
    if (number == 0) return;
    // The word only counts shared holders. A process notes the lock before it has it, so those that still queue go.
    for_each_local(controls, processes, [&](std::uint32_t rank, ControlBlock& block) {
        if (!has(block.shared_locks(target), target)) return;
        if (block.wait.target.load(std::memory_order_acquire) == target + 1) return;
        awaited.add(rank, Relation::HoldsShared);
    });
}

// Before a barrier: those that have not entered it. In the node's second barrier: those that are not back yet from the
// exchange between the nodes.
void find_absent(const ControlTable& controls, std::uint32_t processes, const WaitQuestion& question,
                 Awaited& awaited) {
    const auto is_behind = [](std::uint32_t number, std::uint32_t other) {
        return static_cast<std::int32_t>(number - other) < 0;
    };
    for_each_local(controls, processes, [&](std::uint32_t rank, ControlBlock& block) {
        if (is_behind(block.barriers.load(std::memory_order_acquire), question.barriers))
            awaited.add(rank, Relation::HasNotEntered);
    });
    if (awaited.count != 0 || !controls.is_local(question.waiter)) return;
    const std::uint32_t mine = controls.block(question.waiter).node_barriers.load(std::memory_order_acquire);
    for_each_local(controls, processes, [&](std::uint32_t rank, ControlBlock& block) {
        if (is_behind(block.node_barriers.load(std::memory_order_acquire), mine))
            awaited.add(rank, Relation::InsideBarrier);
    });
}

}  // namespace

void find_awaited(const ControlTable& controls, std::uint32_t processes, const WaitQuestion& question,
                  Awaited& awaited) {
    const bool local = controls.is_local(question.target < processes ? question.target : question.waiter);
    switch (question.kind) {
        case shm::WaitKind::Lock:
            return find_holders(controls, processes, question.target, awaited);
        case shm::WaitKind::Post:
            if (local) awaited.add(question.target, Relation::HasNotPosted);
            return;
        case shm::WaitKind::TargetFence:
            if (local) awaited.add(question.target, Relation::HasNotEntered);
            return;
        case shm::WaitKind::Completes:
            // The post's bit is there until the origin consumes it, and the start's until it has completed.
            return for_each_local(controls, processes, [&](std::uint32_t rank, ControlBlock& block) {
                if (has(block.started(question.waiter), question.waiter))
                    awaited.add(rank, Relation::HasNotCompleted);
                else if (has(block.posts(question.waiter), question.waiter))
                    awaited.add(rank, Relation::HasNotStarted);
            });
        case shm::WaitKind::Barrier:
            return find_absent(controls, processes, question, awaited);
        case shm::WaitKind::Notification:
            return for_each_local(controls, processes, [&](std::uint32_t rank, ControlBlock&) {
                if (rank != question.waiter) awaited.add(rank, Relation::MayNotify);
            });
        case shm::WaitKind::Operations:
            if (local && question.target < processes) awaited.add(question.target, Relation::HasNotAnswered);
            return;
        default:
            return;
    }
}

}  // namespace osc::sync
