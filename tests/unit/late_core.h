// A window of ranks as threads, with deferred strategies.
#pragma once

#include <cstdint>
#include <vector>

#include "thread_ranks.h"

namespace osc::test {

/// Queues increments of word 0 of targets. They are not atomic, so two ranks must not perform them at the same time.
class LateCore final : public Core {
  public:
    LateCore(Ranks& ranks, std::uint32_t rank) : Core(rank, ranks.size()), ranks_(ranks), late_(ranks.size(), 0) {
        controls = ranks.controls();
        lock_order = &order_;
        strategies.fence = strategy::make_fence(strategy::find(strategy::SyncKind::Fence, "deferred"));
        strategies.pscw = strategy::make_pscw(strategy::find(strategy::SyncKind::Pscw, "deferred"));
        strategies.lock = strategy::make_lock(strategy::find(strategy::SyncKind::Lock, "deferred"));
    }
    bool alive(std::uint32_t rank) override { return ranks_.lives().alive(rank); }
    bool can_defer() const override { return true; }
    bool has_deferred(std::uint32_t rank) const override { return late_[rank] != 0; }
    std::vector<std::uint32_t> deferred_targets() const override {
        std::vector<std::uint32_t> all;
        for (std::uint32_t rank = 0; rank < size; ++rank)
            if (late_[rank] != 0) all.push_back(rank);
        return all;
    }
    Fault perform_deferred(std::uint32_t rank) override {
        for (; late_[rank] != 0; --late_[rank])
            ++ranks_.memory(rank)[0];
        return Fault::None;
    }

    /// As an operation of the program: now or later.
    void increment(std::uint32_t rank) {
        bool later = false;
        ASSERT_EQ(epoch::open_target(*this, target(rank), &later), Fault::None) << base::fault_text();
        if (later)
            ++late_[rank];
        else
            ++ranks_.memory(rank)[0];
    }

  protected:
    void describe(Target& target, const shm::ControlBlock&) override { target.way = Way::Mapped; }

  private:
    Ranks& ranks_;
    std::vector<std::uint32_t> late_;
    strategy::LockOrder order_;
};

}  // namespace osc::test
