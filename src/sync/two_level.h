// The two-level locks of a window whose processes are all on different nodes: one local word for each process, and one
// global word at rank 0. Only atomics of the network access these words, also those of the owner (invariant I1). The
// target takes no part, no state grows with the number of processes, and a lock_all is one atomic. docs/STRATEGIES.md
// has the argument, tests/model/two_level.pml the model.
//
// A word has two halves. The low half tallies processes that share the word, the high half processes that exclude
// others:
//   local   low: holders of a shared lock of that process      high: the holder of its exclusive lock
//   global  low: processes inside a lock_all                   high: processes that hold or seek exclusive locks
// A tally is a count and a sum of ranks, so that a waiter can find out whether the processes it waits for are dead.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>

#include "base/fault.h"
#include "sync/remote_sync.h"

namespace osc::sync {

/// Access to the words. Each call is one atomic and returns its result; a fault if the word's owner is dead.
class Words {
  public:
    enum class Word : std::uint32_t { Local, Global };
    /// `before`: what the word was.
    virtual Fault add(std::uint32_t rank, Word word, std::uint64_t value, std::uint64_t& before) = 0;
    virtual Fault swap(std::uint32_t rank, Word word, std::uint64_t expected, std::uint64_t wanted,
                       std::uint64_t& before) = 0;

  protected:
    ~Words() = default;
};

/// A tally: 11 bits of count, and above them 21 bits for the sum of (rank + 1). This limits the size of a window.
inline constexpr std::uint32_t kMostTallied = 2047;
constexpr std::uint32_t tally_of(std::uint32_t rank) {
    return 1 | (rank + 1) << 11;
}
constexpr std::uint32_t tally_count(std::uint32_t tally) {
    return tally & kMostTallied;
}
constexpr std::uint32_t tally_sum(std::uint32_t tally) {
    return tally >> 11;
}
/// Whether all processes of a tally may be among `dead`, the dead ranks in ascending order. True is certain if the
/// tally counts one process, or as many as are dead.
bool may_be_dead(std::uint32_t tally, std::span<const std::uint32_t> dead);

/// The locks of one process at one window. Thread-safe for locks of different targets.
class TwoLevel {
  public:
    TwoLevel(Words& words, std::uint32_t me, std::uint32_t processes, Liveness& liveness)
        : words_(words), me_(me), processes_(processes), liveness_(liveness) {}

    /// Returns when this process holds the lock; a fault if a process that it waits for is dead.
    Fault lock(std::uint32_t target, LockKind kind);
    Fault lock_all();
    /// Releases the lock. The operations under it are complete at the target.
    Fault unlock(std::uint32_t target, LockKind kind);
    Fault unlock_all();

  private:
    enum class Side : unsigned { Sharing = 0, Excluding = 32 };
    static constexpr std::uint32_t kMaster = 0;
    using Word = Words::Word;

    Fault join(std::uint32_t rank, Word word, Side side);
    Fault part(std::uint32_t rank, Word word, Side side);
    Fault exclude(std::uint32_t target);
    Fault enter();
    Fault leave();
    Fault look_for_dead(std::uint32_t rank, Word word, std::uint32_t keeping);
    std::uint64_t mine(Side side) const { return std::uint64_t{tally_of(me_)} << static_cast<unsigned>(side); }
    static std::uint32_t tally(std::uint64_t word, Side side) {
        return static_cast<std::uint32_t>(word >> static_cast<unsigned>(side));
    }

    Words& words_;
    const std::uint32_t me_;
    const std::uint32_t processes_;
    Liveness& liveness_;
    std::mutex entering_;
    std::uint32_t exclusives_ = 0;  // exclusive locks that this process holds or seeks; under entering_
};

}  // namespace osc::sync
