// What orders the processes of a job, as far as the usage checker sees it: vector clocks, in memory that all of them
// share. What a process does before a *release* comes before what another one does after it has *acquired* it. The
// calls release before they can have an effect on others, and acquire when others have had one on them.
//
// A process counts its releases. Its clock has its own number, and for each other process the last release of that one
// that comes before its own next step. It shows the clock of its last release, and others acquire by reading it. A
// reader may find a later release than the one that its call has awaited: it then takes more for ordered than is, and
// never less. So no message carries a clock, and a race may be missed, but none is made up. Collectives on
// MPI_COMM_WORLD, and the fences of a window, are told apart by their numbers: what a process has released when it
// enters one is kept for the others. So is what it has released when it posts.
//
// Locks keep what their holders have released: it is acquired with the lock (MPI 4.1 section 12.5.3).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <vector>

#include "plugins/verify/access.h"

namespace osc::check {

/// A part of an operation's bytes at its target. Trivially copyable: the target's process reads it.
struct RemoteAccess {
    std::uint64_t window = 0;    // its number
    std::uint64_t site = 0;      // of the call
    std::uint64_t known = 0;     // the target's release that comes before the call
    std::uint64_t complete = 0;  // World::Lock: the origin's release that comes after the completion
    std::uint64_t epoch = 0;     // World::Fence: fences before; World::Pscw: the origin's starts on this target, from 1
    Piece piece;
    std::uint32_t target = 0;  // a process of the job
    World world = World::Fence;
    bool store = false;
};

/// Parts of this class in different processes share memory. One thread at a time.
class ProcessOrder {
  public:
    /// Of a part, which begins at a multiple of 64 bytes.
    static std::size_t bytes_of_part(std::uint32_t processes);
    /// `parts[r]` is that of process r, of zero bytes before the first call of any process.
    ProcessOrder(std::uint32_t me, std::vector<std::byte*> parts);

    std::uint32_t me() const { return me_; }
    std::uint32_t processes() const { return static_cast<std::uint32_t>(parts_.size()); }
    /// This process's last release.
    std::uint64_t released() const { return mine_[me_]; }
    /// The last release of a process that this one has acquired.
    std::uint64_t acquired(std::uint32_t process) const { return mine_[process]; }

    /// Returns its number.
    std::uint64_t release();
    /// What a process has released.
    void acquire(std::uint32_t process);

    /// A collective begins here, one of a row (a communicator's, or the fences of a window) that all its processes call
    /// in one order. Returns its number.
    std::uint64_t enter(std::uint64_t row);
    /// It ends here: what those of the processes have released that have entered it.
    void leave(std::uint64_t row, std::uint64_t number, std::span<const std::uint32_t> processes);

    /// A release that begins an exposure epoch; returns its number.
    std::uint64_t post();
    /// What a process has released with its last post, for an access epoch that this post allows.
    void acquire_post(std::uint32_t process);

    /// A lock on a process's memory in a window, granted or about to be released.
    void acquire_lock(std::uint64_t window, std::uint32_t target, bool exclusive);
    void release_lock(std::uint64_t window, std::uint32_t target, bool exclusive);

    /// Shows a part of an operation of this process to its target, before the release that completes it.
    void show(const RemoteAccess& access);
    /// Calls visit(access) for what another process has shown since the last call. False: some was lost, because it
    /// was too much.
    template <class Visit>
    bool read(std::uint32_t origin, Visit&& visit) {
        const Part& part = parts_[origin];
        const std::uint64_t end = part.shown->load(std::memory_order_acquire);
        std::uint64_t& next = read_[origin];
        const bool complete = end - next <= kShown;
        if (!complete) next = end - kShown;
        bool lost = false;
        for (; next < end; ++next) {
            Shown& one = part.log[next % kShown];
            RemoteAccess access;
            std::memcpy(&access, &one.access, sizeof access);
            if (one.number.fetch_add(0, std::memory_order_acq_rel) == next + 1)  // behind what precedes
                visit(access);
            else
                lost = true;
        }
        return complete && !lost;
    }

  private:
    using Word = std::atomic<std::uint64_t>;
    static constexpr std::size_t kCollectives = 128;  // that are kept
    static constexpr std::size_t kLocks = 64;         // of windows; others share one
    static constexpr std::size_t kShown = 8192;

    struct Shown {
        Word number;  // 0: being written
        RemoteAccess access;
    };
    struct Part {
        Word* clock;        // of the last release
        Word* post;         // clock of the last post
        Word* collectives;  // key and clock of each; key 0: being written
        Word* locks;        // clocks of exclusive and of shared holders
        Word* shown;        // count
        Shown* log;
    };
    static std::size_t lay_out(std::byte* from, std::uint32_t processes, Part& part);
    void join(const Word* clock);
    Word* collective_of(std::uint32_t process, std::uint64_t row, std::uint64_t number) const;
    Word* lock_of(std::uint64_t window, std::uint32_t target, bool exclusive) const;

    const std::uint32_t me_;
    std::vector<Part> parts_;
    std::vector<std::uint64_t> mine_;
    std::vector<std::uint64_t> read_;
    std::map<std::uint64_t, std::uint64_t> collectives_;  // of each row
};

}  // namespace osc::check
