// The accesses that this process issues through one window: finds those of its own that conflict when they are issued,
// and keeps all of them until the targets compare them with those of other origins (race_finder.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "plugins/verify/access.h"

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

    /// The number of fences: Access::fence of an operation that is issued now.
    std::uint64_t fences() const { return fences_; }

    /// Takes the accesses to each target; none may be pending.
    std::map<std::uint32_t, std::vector<Entry>> take();

    /// Accesses that were left out since the last call: beyond `most`, or of unknown bytes.
    std::uint64_t take_left_out() { return std::exchange(left_out_, 0); }

  private:
    struct Target {
        std::vector<Entry> entries;
        std::vector<std::size_t> pending;                     // indices of entries
        std::multimap<std::int64_t, std::size_t> by_lo;       // of pending entries
        std::int64_t longest = 0;                             // of pending entries, from the lowest to the highest byte
        std::unordered_map<std::uint64_t, std::size_t> last;  // the pending entry of a call site
        std::uint64_t starts = 0;
        bool locked = false;
        bool exclusive = false;
        bool started = false;
    };
    bool compare(const Target& target, const Entry& entry, std::uint32_t rank, std::vector<Conflict>& found);
    static void await(Target& target, const Entry& entry, std::size_t index);
    bool join(Target& target, const Entry& entry);
    template <class Ends>
    void end(std::uint32_t rank, std::int64_t since, Ends&& ends);

    const std::uint32_t me_;
    const Promises promises_;
    const std::size_t most_;
    std::map<std::uint32_t, Target> targets_;
    std::set<std::pair<std::uint64_t, std::uint64_t>> found_;  // pairs of call sites
    std::size_t kept_ = 0;                                     // pieces
    std::uint64_t fences_ = 0;
    std::uint64_t left_out_ = 0;
    bool lock_all_ = false;
};

}  // namespace osc::check
