// MPI_Win_start awaits the posts of its group.
#include "core/core.h"
#include "core/strategies/registry.h"
#include "core/targets.h"

namespace osc::strategy {
namespace {

class ImmediatePscw final : public PscwStrategy {
  public:
    const char* name() const override { return "immediate"; }
    bool allows_batches() const override { return false; }

    // MPI_Win_complete reports targets that died.
    void start(Core& core, StateGuard& guard, std::span<const std::uint32_t> targets) override {
        for (const std::uint32_t rank : targets)
            static_cast<void>(await_post(core, guard, core.target(rank)));
    }
};

}  // namespace

std::unique_ptr<PscwStrategy> make_pscw_immediate() {
    return std::make_unique<ImmediatePscw>();
}

}  // namespace osc::strategy
