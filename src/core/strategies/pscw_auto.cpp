// MPI_Win_start returns at once; the first operation to each target awaits its post.
#include "core/strategies/registry.h"

namespace osc::strategy {
namespace {

class AutomaticPscw final : public PscwStrategy {
  public:
    const char* name() const override { return "auto"; }
    std::string explain(const Core&) const override { return "with the first operation to each rank"; }
};

}  // namespace

std::unique_ptr<PscwStrategy> make_pscw_auto() {
    return std::make_unique<AutomaticPscw>();
}

}  // namespace osc::strategy
