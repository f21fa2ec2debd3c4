// Deferred fences, after Gropp and Thakur (docs/performance/seeds.md). On a node the window queues the operations. The
// fence behind them passes a barrier, performs them, and passes a second barrier if a process of the node had queued
// any or awaits close messages.
//
// Between nodes the origin sends the operations and awaits no replies. Behind them it sends each target a close
// message. The barrier adds up how many close messages each target will receive, and each target waits for that many.
// docs/NETWORK.md has the argument, tests/model/fence.pml the model.
#include "core/core.h"
#include "core/strategies/registry.h"
#include "core/targets.h"

namespace osc::strategy {
namespace {

// Before the barrier: completes the operations on local targets, and sends the close messages to remote targets.
Fault end_operations(Core& core, const std::vector<std::uint32_t>& targets) {
    base::FirstFault first;
    const bool calls_barrier = core.controls.rank_at(0) == core.me;
    for (const std::uint32_t rank : targets) {
        const Fault fault =
            core.is_local(rank) ? core.complete_ops(rank) : core.remote_sync->close(rank, calls_barrier);
        first.note(fault);
        if (fault == Fault::None && !core.is_local(rank)) core.controls.fence_counts().add(rank, core.size);
    }
    return first.take();
}

// After the barrier: performs and completes the queued operations.
Fault complete_queued(Core& core, const std::vector<std::uint32_t>& targets) {
    base::FirstFault first;
    for (const std::uint32_t rank : targets) {
        if (!core.deferred.has(rank)) continue;
        first.note(base::attempt([&] { return core.perform_deferred(rank); }));
        first.note(core.complete_ops(rank));
    }
    return first.take();
}

// Waits until the operations of other processes on this node's processes are complete. A local process loads and stores
// in its neighbours' memory as soon as it has left the fence, so if one of them awaits close messages, all pass a
// barrier.
bool await_incoming(Core& core, bool queued) {
    const bool closes = core.remote_sync != nullptr && core.controls.fence_counts().any_closes;
    const shm::WaitScope waits(shm::WaitKind::Closes, core.id, core.me);
    if (closes && !core.remote_sync->await_closes(core.mine().closes, core.members)) {
        core.controls.header().barrier.give_up();
        return false;
    }
    return (!closes && !queued) || core.node_barrier();
}

class DeferredFence final : public FenceStrategy {
  public:
    const char* name() const override { return "deferred"; }

    // Operations before a fence with MPI_MODE_NOPRECEDE violate the assert, but none is lost.
    void prepare(Core& core, StateGuard& guard, const FenceCall& call) override {
        if (call.precedes) return;
        for (const std::uint32_t rank : call.targets) {
            static_cast<void>(guard.unlocked([&] { return perform_queued(core, rank); }));
            core.deferred.discard(rank);
        }
    }

    // The barrier does not wait for replies, so a reply to a local process's get may arrive after the fence.
    bool runs_ahead(const Core& core, const FenceCall& call) const override {
        return !call.precedes || core.remote_sync != nullptr;
    }

    bool synchronise(Core& core, const FenceCall& call, Fault& late) override {
        if (!call.precedes) {
            // Only replies of earlier epochs of another kind may be outstanding. Wait until they no longer use this
            // process's buffers.
            late = call.targets.empty() ? core.complete_local() : core.complete_ops();
            return !core.shared_flavour || core.node_barrier();
        }
        const std::uint64_t fence = core.epoch.fences;
        std::atomic<std::uint64_t>& queued = core.controls.header().queued_fence[fence % 2];
        base::FirstFault first;
        first.note(end_operations(core, call.targets));
        if (!core.deferred.targets().empty()) queued.store(fence, std::memory_order_relaxed);
        if (!core.barrier()) return false;
        first.note(complete_queued(core, call.targets));
        if (!await_incoming(core, queued.load(std::memory_order_relaxed) == fence)) return false;
        first.note(core.complete_local());
        late = first.take();
        return true;
    }

    bool opens_early(const Core&) const override { return true; }

    // A target on another node delays the messages itself until it has made its fence.
    Decision on_operation(const Core& core, const Target& target) const override {
        return core.is_local(target.rank) ? Decision::Queue : Decision::Now;
    }

    bool allows_fast_paths() const override { return false; }
};

}  // namespace

std::unique_ptr<FenceStrategy> make_fence_deferred() {
    return std::make_unique<DeferredFence>();
}

}  // namespace osc::strategy
