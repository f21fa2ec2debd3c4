// The accesses that this process issues through one window: finds those of its own that conflict when they are issued,
// and keeps all of them until the targets compare them with those of other origins (race_finder.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "plugins/verify/access_index.h"

namespace osc::check {

/// The epochs are those of the standard; calls that fail are not events. One thread at a time. Times are in ns.
class AccessLog {
  public:
    /// `most`: pieces of accesses that are kept; an access that exceeds them is counted and takes no part.
    AccessLog(std::uint32_t me, Promises promises, std::size_t most = 131072)
        : me_(me), promises_(promises), most_(most) {}

    /// An operation that has been issued by `now`. Appends the conflicts with pending operations of this process, each
    /// pair of call sites once.
    void add(const Operation& operation, std::int64_t now, std::vector<Conflict>& found);

    void lock(std::uint32_t target, bool exclusive);
    void lock_all(bool open) { lock_all_ = open; }
    void start(std::span<const std::uint32_t> targets);
    /// The call that began at `since` has completed all operations at `target`, or kEveryTarget.
    void complete(std::uint32_t target, std::int64_t since);
    /// The same, only of operations whose results the origin has: they have been performed.
    void complete_results(std::uint32_t target, std::int64_t since);
    /// The end of an epoch of MPI_Win_lock, or of MPI_Win_start, which complete() precedes.
    void unlock(std::uint32_t target);
    void end_start();
    /// A fence, or the free of the window, that began at `now`: completes all operations.
    void fence(std::int64_t now);

    /// The epoch that an operation on `target` would be in: Access::fence, ::world, ::exclusive and ::exposure.
    Access epoch_at(std::uint32_t target);

    /// The number of fences: Access::fence of an operation that is issued now.
    std::uint64_t fences() const { return fences_; }

    /// Takes the accesses to each target; none may be pending.
    std::map<std::uint32_t, Entries> take();

    /// Accesses that were left out since the last call: beyond `most`, or of unknown bytes.
    std::uint64_t take_left_out() { return std::exchange(left_out_, 0); }

    /// Pairs of accesses that add() has looked at.
    std::uint64_t compared() const { return compared_; }

  private:
    struct Target {
        explicit Target(Promises promises) : pending(promises) {}
        Entries entries;
        std::vector<Entry*> pending_updates, pending_results;
        AccessIndex pending;                   // of those that later ones are compared with
        std::map<std::uint64_t, Entry*> last;  // of a call site, of `pending`
        std::uint64_t starts = 0;
        bool locked = false;
        bool exclusive = false;
        bool started = false;
    };
    Target& at(std::uint32_t rank) { return targets_.try_emplace(rank, promises_).first->second; }
    bool compare(const Target& target, const Entry& entry, std::uint32_t rank, std::vector<Conflict>& found);
    bool join(Target& target, const Entry& entry);
    void end(std::uint32_t rank, std::int64_t since, bool updates);

    const std::uint32_t me_;
    const Promises promises_;
    const std::size_t most_;
    std::map<std::uint32_t, Target> targets_;
    std::set<std::pair<std::uint64_t, std::uint64_t>> found_;  // pairs of call sites
    std::size_t kept_ = 0;                                     // pieces
    std::uint64_t fences_ = 0;
    std::uint64_t left_out_ = 0;
    std::uint64_t compared_ = 0;
    bool lock_all_ = false;
};

}  // namespace osc::check
