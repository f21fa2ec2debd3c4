// The tests' own fence strategy: what a new one needs is this file and one line of a table. Operations are done as they
// are called; every fence awaits those of this process, and all processes meet.
#include <atomic>

#include "core/core.h"
#include "core/strategies/registry.h"

// The fences that this strategy has served, so that a test knows that it was chosen.
extern "C" [[gnu::visibility("default")]] std::atomic<long> osc_test_example_fences;
std::atomic<long> osc_test_example_fences{0};

namespace osc::strategy {
namespace {

class ExampleFence final : public FenceStrategy {
  public:
    const char* name() const override { return "example"; }
    bool runs_ahead(const Core&, const FenceCall&) const override { return false; }
    bool synchronise(Core& core, const FenceCall&, Fault& late) override {
        ++osc_test_example_fences;
        late = core.complete_ops();
        return core.barrier();
    }
};

}  // namespace

std::unique_ptr<FenceStrategy> make_fence_example() {
    return std::make_unique<ExampleFence>();
}

}  // namespace osc::strategy
