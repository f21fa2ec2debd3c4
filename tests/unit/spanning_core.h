// A window of ranks as threads of which the last one is on another node.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "sync/remote_sync.h"
#include "thread_ranks.h"

namespace osc::test {

/// A rank's window whose last target is on another node. The test decides when that target's lock is granted.
class SpanningCore final : public Members, public Core {
  public:
    SpanningCore(Ranks& ranks, std::uint32_t rank) : Core(rank, ranks.size(), *this), ranks_(ranks), remote_(*this) {
        for (std::uint32_t each = 0; each + 1 < size; ++each)
            local_ranks_.rank_at.push_back(each);
        controls = ranks.controls();
        controls.local_ranks = &local_ranks_;
        remote_sync = &remote_;
        reaches[static_cast<std::size_t>(Way::Net)] = &there_;
        lock_order = &order_;
    }
    bool alive(std::uint32_t rank) override { return ranks_.lives().alive(rank); }
    int dead_in_collective() override { return any_dead(); }
    void describe(Target& target, const shm::ControlBlock&) override {
        target.way = is_local(target.rank) ? Way::Mapped : Way::Net;
        target.base = reinterpret_cast<std::byte*>(ranks_.memory(target.rank).data());
    }

    std::atomic<int> awaited{0};  // locks whose grant a thread awaits
    std::atomic<bool> granted{true};
    int requests = 0;           // locks asked for and given back there
    bool tests = false;         // the other node's process calls MPI_Win_test
    reach::Completion until{};  // what the last wait for operations there waited for

  private:
    // The way to the other node: all that is in flight completes at once.
    struct There final : reach::Reach {
        explicit There(SpanningCore& owner) : core(owner) {}
        reach::Outcome perform(Target&, const op::Call&, const Update&, const reach::Extras&) override { return {}; }
        reach::Outcome admit(Target&, const op::Call&, const Update&) override { return {}; }
        Fault complete(std::uint32_t, reach::Completion until) override {
            core.until = until;
            core.incomplete.store(0, std::memory_order_release);
            return Fault::None;
        }
        SpanningCore& core;
    };
    struct Remote final : sync::RemoteSync {
        explicit Remote(SpanningCore& owner) : core(owner) {}
        Fault lock(std::uint32_t, sync::LockKind, bool) override {
            ++core.requests;
            core.incomplete = 1;
            return Fault::None;
        }
        void await_lock(std::uint32_t) override {
            ++core.awaited;
            while (!core.granted.load())
                std::this_thread::sleep_for(std::chrono::microseconds(100));
        }
        void unlock(std::uint32_t) override { ++core.requests; }
        Fault post(std::uint32_t) override { return Fault::None; }
        Fault send_complete(std::uint32_t) override { return Fault::None; }
        bool awaits_complete(std::uint32_t) override { return core.tests; }
        void announce_test(std::span<const std::uint32_t>) override {}
        Fault close(std::uint32_t, bool) override { return Fault::None; }
        void opened(std::uint64_t, bool) override {}
        bool await_closes(std::uint64_t, sync::Liveness&) override { return true; }
        void forget_results() override {}
        sync::Traffic take_traffic() override { return {}; }
        Fault barrier(sync::Liveness&, sync::FenceSummary&) override { return Fault::None; }
        SpanningCore& core;
    };

    Ranks& ranks_;
    Remote remote_;
    There there_{*this};
    strategy::LockOrder order_;
    shm::LocalRanks local_ranks_;
};

}  // namespace osc::test
