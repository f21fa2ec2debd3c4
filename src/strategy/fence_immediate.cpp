// Immediate fences: operations are done as they are called; the fence awaits those of this process, and then all
// processes meet (G1). With MPI_MODE_NOPRECEDE a fence on one node awaits nobody: the first operation to each target
// awaits that target's fence.
#include "strategy/core.h"
#include "strategy/registry.h"

namespace osc::strategy {
namespace {

class ImmediateFence final : public FenceStrategy {
  public:
    const char* name() const override { return "immediate"; }

    bool runs_ahead(const Core& core, const FenceCall& call) const override {
        return !call.precedes && core.far_sync == nullptr;
    }

    bool synchronise(Core& core, const FenceCall& call, Fault& late) override {
        late = core.settle();
        if (!runs_ahead(core, call)) return core.meet();
        // Loads and stores through the pointers that all processes have await nobody, so there the neighbours meet.
        return !core.shared_flavour || core.meet_here();
    }
};

}  // namespace

std::unique_ptr<FenceStrategy> make_fence_immediate() {
    return std::make_unique<ImmediateFence>();
}

}  // namespace osc::strategy
