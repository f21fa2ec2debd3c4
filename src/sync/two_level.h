// The two-level locks of a window no two of whose processes share a node: a local word for each process and one global
// word at rank 0, taken by atomics of the network and of nothing else (invariant I1), also by their own process. No
// target has to do anything, nothing is kept for each process, and a lock_all is one atomic, whatever the number of
// ranks. docs/STRATEGIES.md has the argument, tests/model/two_level.pml the proof.
//
// A word has two halves, a tally each, of those who share it (low) and of those who exclude others (high):
//   local   who holds a shared lock of its process; who holds the exclusive one
//   global  who is in a lock_all; who holds or seeks exclusive locks
// A tally counts processes and adds up their ranks, so that a waiter can tell whose death it is that keeps it.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>

#include "diag/fault.h"
#include "sync/far.h"

namespace osc::sync {

/// The words, as this process reaches them. Each call is one atomic, awaited; a fault if the word's process is dead.
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

/// 11 bits of count, and above them 21 for the sum of ranks plus one: what limits the processes of a window.
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
/// Whether all who are in a tally may be dead, of whom `dead` are the ranks in ascending order. With one in it, or as
/// many as there are dead, a yes is certain.
bool may_be_dead(std::uint32_t tally, std::span<const std::uint32_t> dead);

/// The locks of one process at one window. Thread-safe for locks of different targets.
class TwoLevel {
  public:
    TwoLevel(Words& words, std::uint32_t me, std::uint32_t processes, Liveness& liveness)
        : words_(words), me_(me), processes_(processes), liveness_(liveness) {}

    /// Returns when the lock is held, or with a fault if a process died that is needed for it.
    Fault lock(std::uint32_t target, LockKind kind);
    Fault lock_all();
    /// Gives it back. Everything done under it has ended at its target.
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
    std::uint32_t exclusives_ = 0;  // that this process holds or seeks; under entering_
};

}  // namespace osc::sync
