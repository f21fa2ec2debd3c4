// A window of ranks as threads, with deferred strategies.
#pragma once

#include <cstdint>
#include <vector>

#include "thread_ranks.h"

namespace osc::test {

/// Increments word 0 of targets, now or later. The increments are not atomic, so two ranks must not perform them at the
/// same time.
class LateCore final : public Members, public Core {
  public:
    LateCore(Ranks& ranks, std::uint32_t rank) : Core(rank, ranks.size(), *this), ranks_(ranks) {
        controls = ranks.controls();
        lock_order = &order_;
        can_defer = true;
        reaches[static_cast<std::size_t>(Way::Mapped)] = &increments_;
        strategies.fence = strategy::make_fence(strategy::find(strategy::SyncKind::Fence, "deferred"));
        strategies.pscw = strategy::make_pscw(strategy::find(strategy::SyncKind::Pscw, "deferred"));
        strategies.lock = strategy::make_lock(strategy::find(strategy::SyncKind::Lock, "deferred"));
    }
    bool alive(std::uint32_t rank) override { return ranks_.lives().alive(rank); }
    int dead_in_collective() override { return any_dead(); }
    void describe(Target& target, const shm::ControlBlock&) override { target.way = Way::Mapped; }

    /// As an operation of the program: now or later.
    void increment(std::uint32_t rank) {
        const op::Operand nothing{nullptr, 0, &layout_};
        op::Call call;
        call.origin = call.target = nothing;
        bool later = false;
        ASSERT_EQ(epoch::open_target(*this, target(rank), &later), Fault::None) << base::fault_text();
        ASSERT_EQ(later ? defer(target(rank), {call, {}, {}, {}}) : execute(target(rank), call), Fault::None);
    }

  private:
    struct Increments final : reach::Reach {
        explicit Increments(Ranks& all) : ranks(all) {}
        reach::Outcome perform(Target& target, const op::Call&, const Update&, const reach::Extras&) override {
            ++ranks.memory(target.rank)[0];
            return {};
        }
        reach::Outcome admit(Target&, const op::Call&, const Update&) override { return {}; }
        Ranks& ranks;
    };

    Ranks& ranks_;
    Increments increments_{ranks_};
    op::Layout layout_;
    strategy::LockOrder order_;
};

}  // namespace osc::test
