// MPI_Win_start returns at once and the window queues operations; MPI_Win_complete awaits the posts and performs the
// operations.
#include "core/core.h"
#include "core/strategies/registry.h"

namespace osc::strategy {
namespace {

class DeferredPscw final : public PscwStrategy {
  public:
    const char* name() const override { return "deferred"; }

    Decision on_operation(const Core& core, const Target& target) const override {
        return target.post != Post::Taken && !core.epoch.no_check ? Decision::Queue : Decision::Now;
    }

    bool allows_fast_paths() const override { return false; }
};

}  // namespace

std::unique_ptr<PscwStrategy> make_pscw_deferred() {
    return std::make_unique<DeferredPscw>();
}

}  // namespace osc::strategy
