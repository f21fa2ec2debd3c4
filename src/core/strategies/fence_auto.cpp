// Chooses between immediate and deferred fences. On one node: immediate. Between nodes: deferred at first; then the
// strategy that the cost model (sync/costs.h) predicts as faster for the epoch that has ended. Each process votes at
// the fence, and one vote for "immediate" outweighs all for "deferred". The votes travel with the fence's own messages,
// so all processes decide alike.
#include <utility>

#include "base/log.h"
#include "base/options.h"
#include "core/core.h"
#include "core/strategies/registry.h"

namespace osc::strategy {
namespace {

class AutomaticFence final : public FenceStrategy {
  public:
    const char* name() const override { return "auto"; }
    std::string explain(const Core& core) const override {
        if (core.remote_sync == nullptr) return "immediate, on one node";
        if (changes_ == 0) return "deferred until an epoch would have been faster without";
        return base::format(
            "%s since fence %llu, %llu changes; the last vote here: %.1f us immediate, %.1f us deferred",
            immediate_now_ ? "immediate" : "deferred", static_cast<unsigned long long>(changed_),
            static_cast<unsigned long long>(changes_), vote_.immediate / 1e3, vote_.deferred / 1e3);
    }

    void prepare(Core& core, StateGuard& guard, const FenceCall& call) override {
        chosen(core).prepare(core, guard, call);
        if (core.remote_sync != nullptr) propose(core, call.precedes && call.used);
    }
    bool runs_ahead(const Core& core, const FenceCall& call) const override {
        return chosen(core).runs_ahead(core, call);
    }
    bool synchronise(Core& core, const FenceCall& call, Fault& late) override {
        return chosen(core).synchronise(core, call, late);
    }
    bool opens_early(const Core& core) const override { return chosen(core).opens_early(core); }

    // A fence without a barrier of all processes carries no votes.
    void conclude(Core& core, const FenceCall& call) override {
        if (core.remote_sync != nullptr && (call.precedes || immediate_now_)) adopt(core);
    }

  private:
    FenceStrategy& chosen(const Core& core) const {
        return core.remote_sync != nullptr && !immediate_now_ ? *deferred_ : *immediate_;
    }

    // Casts this process's vote for the next epochs, from its traffic in this one.
    void propose(Core& core, bool fences_epoch) {
        const sync::Traffic traffic = core.remote_sync->take_traffic();
        if (!fences_epoch || !traffic.any()) return;
        const sync::Predicted predicted = sync::predict(core.costs, traffic);
        vote_ = predicted;
        const std::uint32_t wants = sync::wanted(predicted, traffic);
        core.controls.fence_counts().wants.fetch_or(wants, std::memory_order_relaxed);
        if (!base::verbose("strategy") || (wants == sync::kImmediate) == immediate_now_) return;
        base::say(
            "fence %llu of a window of %u processes: %llu bytes in messages and %llu directly would take %.1f us "
            "immediate, %.1f us deferred",
            static_cast<unsigned long long>(core.epoch.fences + 1), core.size,
            static_cast<unsigned long long>(traffic.gathered), static_cast<unsigned long long>(traffic.direct),
            predicted.immediate / 1e3, predicted.deferred / 1e3);
    }

    // All processes read the same votes, because the barrier has exchanged them. An epoch without operations, as before
    // an opening fence, changes nothing.
    void adopt(Core& core) {
        const std::uint32_t wanted = core.controls.fence_counts().wanted;
        if (wanted == sync::kNothing) return;
        const bool immediate = (wanted & sync::kImmediate) != 0;
        if (std::exchange(immediate_now_, immediate) == immediate) return;
        ++changes_;
        changed_ = core.epoch.fences;
        if (core.me == 0 && base::verbose("strategy"))
            base::say("fence %llu of a window of %u processes: fences are %s from now on",
                      static_cast<unsigned long long>(core.epoch.fences), core.size,
                      immediate ? "immediate" : "deferred");
    }

    const std::unique_ptr<FenceStrategy> immediate_ = make_fence_immediate();
    const std::unique_ptr<FenceStrategy> deferred_ = make_fence_deferred();
    sync::Predicted vote_{};      // the prediction behind this process's last vote
    std::uint64_t changes_ = 0;   // of immediate_now_
    std::uint64_t changed_ = 0;   // the fence of the last one
    bool immediate_now_ = false;  // between nodes; the same on all processes
};

}  // namespace

std::unique_ptr<FenceStrategy> make_fence_auto() {
    return std::make_unique<AutomaticFence>();
}

}  // namespace osc::strategy
