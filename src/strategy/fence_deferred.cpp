// Deferred fences (G2). On a node the window queues the operations; the fence behind them meets, has them done, and
// meets again if a process of the node had queued any. Between nodes operations are sent, but no process awaits
// replies: each one tells its targets, behind its operations, that they are over; the processes tell each other how
// many will tell each target; and each one waits until it has been told so often. docs/NETWORK.md says why that is
// right, tests/model/fence.pml shows it.
#include "strategy/core.h"
#include "strategy/registry.h"
#include "strategy/targets.h"

namespace osc::strategy {
namespace {

// Before all processes meet: awaits what was done on targets of this node, and tells other nodes' targets that all is
// over.
Fault end_operations(Core& core, const std::vector<std::uint32_t>& targets) {
    Fault first = Fault::None;
    const bool tells = core.slot.rank_at(0) == core.me;
    for (const std::uint32_t target : targets) {
        const Fault fault = core.here(target) ? core.settle(target) : core.far_sync->close(target, tells);
        if (fault != Fault::None)
            first = fault;
        else if (!core.here(target))
            core.slot.fence_news().add(target, core.size);
    }
    return first;
}

// After that: does what was queued.
Fault do_queued(Core& core, const std::vector<std::uint32_t>& targets) {
    Fault first = Fault::None;
    for (const std::uint32_t target : targets) {
        if (!core.has_put_off(target)) continue;
        const Fault done = core.do_put_off(target);
        const Fault ended = core.settle(target);
        if (done != Fault::None || ended != Fault::None) first = done != Fault::None ? done : ended;
    }
    return first;
}

// Waits until the operations of other processes on this process and its neighbours are over. Neighbours load and store
// as soon as they have left the fence, so all of the node wait for each other if anything is awaited.
bool await_others(Core& core, bool queued) {
    const bool closes = core.far_sync != nullptr && core.slot.fence_news().any_closes;
    if (closes && !core.far_sync->await_closes(core.mine().closes, core)) {
        core.slot.header().barrier.give_up();
        return false;
    }
    return (!closes && !queued) || core.meet_here();
}

class DeferredFence final : public FenceStrategy {
  public:
    const char* name() const override { return "deferred"; }

    // Operations before a fence with MPI_MODE_NOPRECEDE are against the assert, but none is lost.
    void prepare(Core& core, StateGuard& guard, const FenceCall& call) override {
        if (call.precedes) return;
        for (const std::uint32_t target : call.targets) {
            static_cast<void>(guard.unlocked([&] { return do_now(core, target); }));
            core.discard_put_off(target);
        }
    }

    // Replies are not awaited before all meet, so those to a neighbour's gets may still come behind the fence.
    bool runs_ahead(const Core& core, const FenceCall& call) const override {
        return !call.precedes || core.far_sync != nullptr;
    }

    bool synchronise(Core& core, const FenceCall& call, Fault& late) override {
        if (!call.precedes) {
            // Of epochs of other kinds there may be replies under way, which nobody needs now.
            late = call.targets.empty() ? core.settle_local(Core::kEveryTarget) : core.settle();
            return !core.shared_flavour || core.meet_here();
        }
        const std::uint64_t fence = core.epoch.fences;
        std::atomic<std::uint64_t>& queued = core.slot.header().put_off[fence % 2];
        late = end_operations(core, call.targets);
        if (!core.put_off_targets().empty()) queued.store(fence, std::memory_order_relaxed);
        if (!core.meet()) return false;
        if (const Fault fault = do_queued(core, call.targets); fault != Fault::None) late = fault;
        if (!await_others(core, queued.load(std::memory_order_relaxed) == fence)) return false;
        if (const Fault fault = core.settle_local(Core::kEveryTarget); late == Fault::None) late = fault;
        return true;
    }

    bool opens_early(const Core&) const override { return true; }

    // What goes to other nodes waits there for the target's fence.
    Decision on_operation(const Core& core, const Peer& peer) const override {
        return core.here(peer.rank) ? Decision::Queue : Decision::Now;
    }

    bool allows_fast_paths() const override { return false; }
};

}  // namespace

std::unique_ptr<FenceStrategy> make_fence_deferred() {
    return std::make_unique<DeferredFence>();
}

}  // namespace osc::strategy
