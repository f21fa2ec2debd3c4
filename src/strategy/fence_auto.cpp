// Chooses between immediate and deferred fences. On one node: immediate. Between nodes: deferred at first, then what
// the model of costs (sync/costs.h) says would have been faster for the epoch that has ended. Each process says so at
// the fence; "immediate" goes before "deferred"; the bits travel with the fence's own messages, so all processes decide
// alike (G8).
#include <utility>

#include "config/options.h"
#include "diag/log.h"
#include "strategy/core.h"
#include "strategy/registry.h"

namespace osc::strategy {
namespace {

class AutomaticFence final : public FenceStrategy {
  public:
    const char* name() const override { return "auto"; }
    std::string explain(const Core& core) const override {
        return core.far_sync != nullptr ? "deferred until an epoch would have been faster without"
                                        : "immediate, by load and store";
    }

    void prepare(Core& core, StateGuard& guard, const FenceCall& call) override {
        chosen(core).prepare(core, guard, call);
        if (core.far_sync != nullptr) propose(core, call.precedes && call.used);
    }
    bool runs_ahead(const Core& core, const FenceCall& call) const override {
        return chosen(core).runs_ahead(core, call);
    }
    bool synchronise(Core& core, const FenceCall& call, Fault& late) override {
        return chosen(core).synchronise(core, call, late);
    }
    bool opens_early(const Core& core) const override { return chosen(core).opens_early(core); }

    // A fence at which not all processes meet says nothing.
    void conclude(Core& core, const FenceCall& call) override {
        if (core.far_sync != nullptr && (call.precedes || immediate_now_)) adopt(core);
    }

  private:
    FenceStrategy& chosen(const Core& core) const {
        return core.far_sync != nullptr && !immediate_now_ ? *deferred_ : *immediate_;
    }

    // What this process wants the next epochs to be, by what it has done in this one.
    void propose(Core& core, bool fences_epoch) const {
        const sync::Traffic traffic = core.far_sync->take_traffic();
        if (!fences_epoch || !traffic.any()) return;
        const sync::Predicted predicted = sync::predict(core.costs, traffic);
        const std::uint32_t wants = sync::wanted(predicted, traffic);
        core.slot.fence_news().wants.fetch_or(wants, std::memory_order_relaxed);
        if (!config::verbose("strategy") || (wants == sync::kImmediate) == immediate_now_) return;
        diag::say(
            "fence %llu of a window of %u processes: %llu bytes in messages and %llu directly would take %.1f us "
            "immediate, %.1f us deferred",
            static_cast<unsigned long long>(core.epoch.fences + 1), core.size,
            static_cast<unsigned long long>(traffic.gathered), static_cast<unsigned long long>(traffic.direct),
            predicted.immediate / 1e3, predicted.deferred / 1e3);
    }

    // All processes know it alike, by the barrier that they have passed. Epochs without operations, as before an
    // opening fence, change nothing.
    void adopt(Core& core) {
        const std::uint32_t wanted = core.slot.fence_news().wanted;
        if (wanted == sync::kNothing) return;
        const bool immediate = (wanted & sync::kImmediate) != 0;
        if (std::exchange(immediate_now_, immediate) == immediate || core.me != 0) return;
        if (config::verbose("strategy"))
            diag::say("fence %llu of a window of %u processes: fences are %s from now on",
                      static_cast<unsigned long long>(core.epoch.fences), core.size,
                      immediate ? "immediate" : "deferred");
    }

    const std::unique_ptr<FenceStrategy> immediate_ = make_fence_immediate();
    const std::unique_ptr<FenceStrategy> deferred_ = make_fence_deferred();
    bool immediate_now_ = false;  // between nodes; the same on all processes
};

}  // namespace

std::unique_ptr<FenceStrategy> make_fence_auto() {
    return std::make_unique<AutomaticFence>();
}

}  // namespace osc::strategy
