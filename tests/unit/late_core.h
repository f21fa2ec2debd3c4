// A window of ranks as threads whose synchronisation is deferred.
#pragma once

#include <cstdint>
#include <vector>

#include "thread_ranks.h"

namespace osc::test {

/// Puts off increments of word 0 of targets, not atomic: who does them has to be alone there.
class LateCore final : public Core {
  public:
    LateCore(Ranks& ranks, std::uint32_t rank) : Core(rank, ranks.size()), ranks_(ranks), late_(ranks.size(), 0) {
        slot = ranks.slot();
        strategies.fence = strategy::make_fence(strategy::find(strategy::Kind::Fence, "deferred"));
        strategies.pscw = strategy::make_pscw(strategy::find(strategy::Kind::Pscw, "deferred"));
        strategies.lock = strategy::make_lock(strategy::find(strategy::Kind::Lock, "deferred"));
    }
    bool alive(std::uint32_t rank) override { return ranks_.lives().alive(rank); }
    bool puts_off() const override { return true; }
    bool has_put_off(std::uint32_t target) const override { return late_[target] != 0; }
    std::vector<std::uint32_t> put_off_targets() const override {
        std::vector<std::uint32_t> all;
        for (std::uint32_t target = 0; target < size; ++target)
            if (late_[target] != 0) all.push_back(target);
        return all;
    }
    Fault do_put_off(std::uint32_t target) override {
        for (; late_[target] != 0; --late_[target])
            ++ranks_.memory(target)[0];
        return Fault::None;
    }

    /// As an operation of the program: now or later.
    void increment(std::uint32_t target) {
        bool later = false;
        ASSERT_EQ(epoch::open_target(*this, peer(target), &later), Fault::None) << diag::fault_text();
        if (later)
            ++late_[target];
        else
            ++ranks_.memory(target)[0];
    }

  protected:
    void describe(Peer& peer, const shm::ControlBlock&) override { peer.path = Path::Direct; }

  private:
    Ranks& ranks_;
    std::vector<std::uint32_t> late_;
};

}  // namespace osc::test
