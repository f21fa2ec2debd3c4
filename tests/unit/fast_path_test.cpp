// The inlined fast paths against their slow paths. Two worlds get the same random calls: in one each call tries its
// fast path first, as the entry points do, in the other it takes the slow path. After each call the result of the call
// and all state must be the same. The calls of a world are made by one thread per rank, one at a time, and only where
// they do not wait.
#include <gtest/gtest.h>

#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "core/epoch.h"
#include "spanning_core.h"
#include "thread_ranks.h"

namespace osc::test {
namespace {

using sync::LockKind;

constexpr std::uint32_t kRanks = 3;  // the last one is on another node

/// Runs one thing at a time in a thread of its own: deferred locks belong to threads.
class Worker {
  public:
    Worker() : thread_([this] { loop(); }) {}
    ~Worker() {
        run([this] { end_ = true; });
        thread_.join();
    }
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    void run(std::function<void()> work) {
        std::unique_lock lock(mutex_);
        work_ = std::move(work);
        changed_.notify_all();
        changed_.wait(lock, [this] { return !work_; });
    }

  private:
    void loop() {
        std::unique_lock lock(mutex_);
        while (!end_) {
            changed_.wait(lock, [this] { return static_cast<bool>(work_); });
            work_();
            work_ = nullptr;
            changed_.notify_all();
        }
    }
    std::mutex mutex_;
    std::condition_variable changed_;
    std::function<void()> work_;
    bool end_ = false;
    std::thread thread_;
};

enum class Call {
    Lock,
    LockShared,
    LockNoCheck,
    Unlock,
    LockAll,
    UnlockAll,
    Flush,
    FlushLocal,
    Operate,
    LeaveUnderWay,
    Count
};

struct Step {
    std::uint32_t rank;
    std::uint32_t window;
    Call call;
    std::uint32_t target;
};

/// Two windows of two ranks on this node, with a third rank elsewhere.
class World {
  public:
    explicit World(bool fast) : fast_(fast) {
        for (int window = 0; window < 2; ++window) {
            Ranks& ranks = windows_.emplace_back(kRanks);
            for (std::uint32_t rank = 0; rank + 1 < kRanks; ++rank)
                cores_.emplace_back(ranks, rank).lock_order = &orders_[rank];
        }
    }

    SpanningCore& core(const Step& step) { return cores_[step.window * (kRanks - 1) + step.rank]; }

    Fault make(const Step& step) {
        Fault fault = Fault::None;
        workers_[step.rank].run([&] { fault = call(core(step), step); });
        return fault;
    }

    /// All state that a later call may see.
    std::string state() {
        std::ostringstream out;
        for (SpanningCore& core : cores_) {
            out << "rank " << core.me << ": access " << static_cast<int>(core.epoch.access) << ", locks "
                << core.epoch.locks << ", touched " << core.epoch.touched.size() << ", deferred "
                << core.lock_order->is_pending() << ", flushable " << core.flushable.load() << ", awaited "
                << core.awaited.load() << ", far " << core.requests;
            for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
                Target& target = core.target(rank);
                out << "; " << rank << ": held " << static_cast<int>(target.held_lock) << " reach "
                    << target.fast_limit.load() << (target.touched ? " touched" : "");
                if (core.is_local(rank)) out << " word " << std::hex << target.control().lock.word.load() << std::dec;
            }
            out << '\n';
        }
        return out.str();
    }

  private:
    Fault call(Core& core, const Step& step) {
        const std::uint32_t rank = step.target;
        switch (step.call) {
            case Call::Lock:
                if (fast_ && epoch::try_lock<false, true>(core, rank)) return Fault::None;
                return epoch::lock(core, rank, LockKind::Exclusive, 0);
            case Call::LockShared:
                return epoch::lock(core, rank, LockKind::Shared, 0);
            case Call::LockNoCheck:
                return epoch::lock(core, rank, LockKind::Exclusive, epoch::kNoCheck);
            case Call::Unlock:
                return unlock(core, rank);
            case Call::LockAll:
                return epoch::lock_all(core, 0);
            case Call::UnlockAll:
                return epoch::unlock_all(core);
            case Call::Flush:
                if (fast_ && epoch::may_order_only(core, rank)) return Fault::None;
                return epoch::flush(core, rank);
            case Call::FlushLocal:
                if (fast_ && epoch::may_order_only(core, rank)) return Fault::None;
                return epoch::flush(core, rank, reach::Completion::AtOrigin);
            case Call::Operate:
                return operate(core, rank);
            case Call::LeaveUnderWay:
                if (core.target(rank).fast_limit.load() == 0) return Fault::None;
                core.incomplete.store(1);
                epoch::mark_incomplete(core, core.target(rank));
                return Fault::None;
            case Call::Count:
                break;
        }
        return Fault::Other;
    }

    Fault unlock(Core& core, std::uint32_t rank) {
        if (!fast_) return epoch::unlock(core, rank);
        const sync::Released released = epoch::try_unlock<false>(core, rank);
        if (released == sync::Released::Yes) return Fault::None;
        if (released == sync::Released::No) return epoch::unlock(core, rank);
        epoch::unlock_late(core, rank, false);
        return Fault::None;
    }

    Fault operate(Core& core, std::uint32_t rank) {
        Target& target = core.target(rank);
        if (target.fast_limit.load() != 0) return Fault::None;
        if (fast_ && epoch::opens(core, rank)) return Fault::None;
        bool later = false;
        return epoch::open_target(core, target, &later);
    }

    const bool fast_;
    std::deque<Ranks> windows_;
    strategy::LockOrder orders_[kRanks - 1];
    std::deque<SpanningCore> cores_;
    Worker workers_[kRanks - 1];
};

/// Whether a step would wait: it requests a lock that another rank holds.
bool would_wait(World& world, const Step& step) {
    SpanningCore& core = world.core(step);
    const auto held_by_other = [&](std::uint32_t rank, bool shared) {
        const std::uint64_t word = core.is_local(rank) ? core.target(rank).control().lock.word.load() : 0;
        return shared ? (word & sync::kExclusive) != 0 : word != 0;
    };
    switch (step.call) {
        case Call::Lock:
            return held_by_other(step.target, false);
        case Call::LockShared:
            return held_by_other(step.target, true);
        case Call::LockAll:
            return held_by_other(step.rank, true);
        case Call::Operate:
            return core.epoch.access == Access::LockAll && held_by_other(step.target, true);
        default:
            return false;
    }
}

const char* name_of(Call call) {
    constexpr const char* kNames[] = {"lock",       "lock shared", "lock nocheck", "unlock",    "lock_all",
                                      "unlock_all", "flush",       "flush_local",  "operation", "leave under way"};
    return kNames[static_cast<int>(call)];
}

std::string text_of(const Step& step) {
    std::ostringstream out;
    out << "rank " << step.rank << ", window " << step.window << ": " << name_of(step.call) << " of " << step.target;
    return out.str();
}

// OSC_TEST_SEED repeats one run.
TEST(FastPath, LeavesTheStateThatTheSlowPathLeaves) {
    const Deadline deadline(120);
    const char* given = std::getenv("OSC_TEST_SEED");
    const unsigned first = given != nullptr ? static_cast<unsigned>(std::atoi(given)) : 1;
    const int runs = given != nullptr ? 1 : times(60, 6);
    std::map<std::string, int> seen;  // calls by the epoch that they met
    for (int run = 0; run < runs; ++run) {
        const unsigned seed = first + static_cast<unsigned>(run);
        SCOPED_TRACE("OSC_TEST_SEED=" + std::to_string(seed));
        World fast(true);
        World slow(false);
        std::minstd_rand random(seed);
        std::string last;
        for (int i = 0; i < 400; ++i) {
            const auto pick = [&](std::uint32_t below) { return static_cast<std::uint32_t>(random()) % below; };
            Step step{pick(kRanks - 1), pick(2), static_cast<Call>(pick(static_cast<std::uint32_t>(Call::Count))),
                      pick(kRanks)};
            if (pick(3) == 0) step.call = Call::Lock;
            if (would_wait(slow, step)) continue;
            const Access access = slow.core(step).epoch.access;
            ++seen[std::string(name_of(step.call)) + " in " + std::to_string(static_cast<int>(access))];
            ASSERT_EQ(fast.make(step), slow.make(step)) << text_of(step);
            ASSERT_EQ(fast.state(), slow.state()) << "after " << text_of(step) << "; before:\n" << last;
            last = slow.state();
        }
    }
    // Each call meets no epoch, lock epochs and lock_all epochs.
    if (given != nullptr) return;
    for (int call = 0; call < static_cast<int>(Call::Count); ++call)
        for (const Access access : {Access::None, Access::Lock, Access::LockAll})
            EXPECT_GT(
                seen[std::string(name_of(static_cast<Call>(call))) + " in " + std::to_string(static_cast<int>(access))],
                0)
                << name_of(static_cast<Call>(call));
}

// What the one check of the fast paths lets through, at units whose products overflow too.
TEST(FastPath, ATargetContainsWholePagesAlone) {
    Target target{};
    std::uint64_t offset = 0;
    EXPECT_FALSE(target.contains(0, 0, 0, offset));  // closed, or not filled yet
    target.unit = 8;
    target.first = 100;
    const std::uint64_t limit = 4000 + 1;
    EXPECT_TRUE(target.contains(100, 8, limit, offset));
    EXPECT_EQ(offset, 800u);
    EXPECT_TRUE(target.contains(499, 8, limit, offset));
    EXPECT_TRUE(target.contains(500, 0, limit, offset));
    EXPECT_TRUE(target.contains(100, 3200, limit, offset));
    constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
    for (const std::int64_t disp : {std::int64_t{99}, std::int64_t{-1}, -kMost, std::int64_t{501},
                                    std::int64_t{1} << 60, std::int64_t{1} << 61, std::int64_t{1} << 62, kMost})
        EXPECT_FALSE(target.contains(disp, 8, limit, offset)) << disp;
    EXPECT_FALSE(target.contains(499, 9, limit, offset));
    EXPECT_FALSE(target.contains(100, 3201, limit, offset));
}

}  // namespace
}  // namespace osc::test
