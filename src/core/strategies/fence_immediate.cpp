// Immediate fences: the call performs the operation; the fence completes this process's operations and passes a
// barrier. With MPI_MODE_NOPRECEDE a fence on one node does not wait: the first operation to each target awaits that
// target's fence.
#include "core/core.h"
#include "core/strategies/registry.h"

namespace osc::strategy {
namespace {

class ImmediateFence final : public FenceStrategy {
  public:
    const char* name() const override { return "immediate"; }
    bool allows_batches() const override { return false; }

    bool runs_ahead(const Core& core, const FenceCall& call) const override {
        return !call.precedes && core.remote_sync == nullptr;
    }

    bool synchronise(Core& core, const FenceCall& call, Fault& late) override {
        late = core.complete_ops();
        if (!runs_ahead(core, call)) return core.barrier();
        // Loads and stores through the user's pointers wait for no fence, so a shared window needs the node's barrier.
        return !core.shared_flavour || core.node_barrier();
    }
};

}  // namespace

std::unique_ptr<FenceStrategy> make_fence_immediate() {
    return std::make_unique<ImmediateFence>();
}

}  // namespace osc::strategy
