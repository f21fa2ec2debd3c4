// Acquisition and release of two-level locks, and the waiting for a lock that is not free.
// Build: osc_core_cold
#include "sync/two_level.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <random>
#include <vector>

#include "base/fault.h"
#include "base/wait_time.h"
#include "shm/wait.h"

namespace osc::sync {
namespace {

using base::fail;
using Clock = std::chrono::steady_clock;

/// The pause between two polls of a word. It doubles each time and is randomised, so that two processes that collided
/// do not collide again. The waiting process drives the network and the host meanwhile (invariant I3).
class BackOff {
  public:
    explicit BackOff(std::uint32_t rank)
        : random_(rank + static_cast<std::uint32_t>(Clock::now().time_since_epoch().count())) {}

    void pause() {
        const base::TimedWait waits;
        const auto limit = limit_.count();
        limit_ = std::min(2 * limit_, kLongest);
        const Clock::time_point until = Clock::now() + std::chrono::nanoseconds(limit / 2 + random_() % (limit / 2));
        const shm::WaitPolicy policy = shm::wait_policy();
        do {
            if (policy.network != nullptr) policy.network();
            if (policy.progress != nullptr) policy.progress();
            if (until - Clock::now() > kSleep) {
                const timespec sleep{0, kSleep.count()};
                ::nanosleep(&sleep, nullptr);
            } else {
                ::sched_yield();
            }
        } while (Clock::now() < until);
    }

    /// Whether it is time to ask if the processes of a tally are dead: every kAskEvery. A single process is tested at
    /// each poll once kAskEvery has passed, because the tally may soon change.
    bool is_check_due(std::uint32_t keeping) {
        const Clock::time_point now = Clock::now();
        if (now - (tally_count(keeping) == 1 ? begun_ : asked_) < kAskEvery) return false;
        asked_ = now;
        return true;
    }

  private:
    static constexpr std::chrono::nanoseconds kSleep{50000};
    static constexpr std::chrono::nanoseconds kLongest{1000000};
    static constexpr std::chrono::milliseconds kAskEvery{100};
    std::minstd_rand random_;
    std::chrono::nanoseconds limit_{4000};
    const Clock::time_point begun_ = Clock::now();
    Clock::time_point asked_ = begun_;
};

}  // namespace

bool may_be_dead(std::uint32_t tally, std::span<const std::uint32_t> dead) {
    const std::size_t count = tally_count(tally);
    if (count == 0 || count > dead.size()) return false;
    const std::uint32_t sum = tally_sum(tally);
    if (count == 1) return std::binary_search(dead.begin(), dead.end(), sum - 1);
    std::uint64_t least = count;
    std::uint64_t most = count;
    for (const std::uint32_t rank : dead.first(count))
        least += rank;
    for (const std::uint32_t rank : dead.last(count))
        most += rank;
    return least <= sum && sum <= most;
}

// A dead process stays in its tallies, the others leave them. So a waiter eventually sees a tally of dead processes
// only. `keeping`: the tally that this process waits for.
Fault TwoLevel::look_for_dead(std::uint32_t rank, Word word, std::uint32_t keeping) {
    std::vector<std::uint32_t> dead;
    if (tally_count(keeping) == 1) {
        const std::uint32_t only = tally_sum(keeping) - 1;
        if (only < processes_ && only != me_ && !liveness_.alive(only)) dead.push_back(only);
    } else {
        for (std::uint32_t other = 0; other < processes_; ++other)
            if (other != me_ && !liveness_.alive(other)) dead.push_back(other);
    }
    if (!may_be_dead(keeping, dead)) return Fault::None;
    if (word == Word::Global)
        return fail(
            Fault::Dead,
            "rank %u died, or its connection was lost, with a lock of the window; this lock cannot be taken any "
            "more",
            dead[0]);
    return fail(Fault::Dead,
                "rank %u died, or its connection was lost, while it held a lock on rank %u; the lock cannot be taken "
                "any more",
                dead[0], rank);
}

// Enters one half of a word while the other half is empty. If it is not, the process leaves again and polls the word.
Fault TwoLevel::join(std::uint32_t rank, Word word, Side side) {
    const Side other = side == Side::Sharing ? Side::Excluding : Side::Sharing;
    const auto free = [&](std::uint64_t seen) { return tally_count(tally(seen, other)) == 0; };
    BackOff back_off(me_);
    for (;;) {
        std::uint64_t seen = 0;
        if (const Fault fault = words_.add(rank, word, mine(side), seen); fault != Fault::None) return fault;
        if (free(seen)) return Fault::None;
        if (const Fault fault = part(rank, word, side); fault != Fault::None) return fault;
        do {
            back_off.pause();
            if (const Fault fault = words_.add(rank, word, 0, seen); fault != Fault::None) return fault;
            const std::uint32_t keeping = tally(seen, other);
            if (free(seen) || !back_off.is_check_due(keeping)) continue;
            if (const Fault fault = look_for_dead(rank, word, keeping); fault != Fault::None) return fault;
        } while (!free(seen));
    }
}

Fault TwoLevel::part(std::uint32_t rank, Word word, Side side) {
    std::uint64_t before = 0;
    return words_.add(rank, word, -mine(side), before);
}

// Takes the local word exclusively, which requires both halves to be empty.
Fault TwoLevel::exclude(std::uint32_t target) {
    BackOff back_off(me_);
    for (;;) {
        std::uint64_t seen = 0;
        const Fault fault = words_.swap(target, Word::Local, 0, mine(Side::Excluding), seen);
        if (fault != Fault::None || seen == 0) return fault;
        const std::uint32_t holder = tally(seen, Side::Excluding);
        const std::uint32_t keeping = holder != 0 ? holder : tally(seen, Side::Sharing);
        if (back_off.is_check_due(keeping))
            if (const Fault dead = look_for_dead(target, Word::Local, keeping); dead != Fault::None) return dead;
        back_off.pause();
    }
}

// The first exclusive lock of this process enters the global word, which keeps lock_alls out; its later exclusive locks
// only count.
Fault TwoLevel::enter() {
    const std::lock_guard lock(entering_);
    if (exclusives_ == 0)
        if (const Fault fault = join(kMaster, Word::Global, Side::Excluding); fault != Fault::None) return fault;
    ++exclusives_;
    return Fault::None;
}

Fault TwoLevel::leave() {
    const std::lock_guard lock(entering_);
    return --exclusives_ == 0 ? part(kMaster, Word::Global, Side::Excluding) : Fault::None;
}

Fault TwoLevel::lock(std::uint32_t target, LockKind kind) {
    if (kind == LockKind::Shared) return join(target, Word::Local, Side::Sharing);
    if (const Fault fault = enter(); fault != Fault::None) return fault;
    base::FirstFault first;
    first.note(exclude(target));
    if (first.is_set()) static_cast<void>(leave());
    return first.take();
}

Fault TwoLevel::unlock(std::uint32_t target, LockKind kind) {
    if (kind == LockKind::Shared) return part(target, Word::Local, Side::Sharing);
    base::FirstFault first;
    first.note(part(target, Word::Local, Side::Excluding));
    first.note(leave());
    return first.take();
}

Fault TwoLevel::lock_all() {
    return join(kMaster, Word::Global, Side::Sharing);
}

Fault TwoLevel::unlock_all() {
    return part(kMaster, Word::Global, Side::Sharing);
}

}  // namespace osc::sync
