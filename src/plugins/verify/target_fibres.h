// Finds loads and stores of this process to its window memory that conflict with operations of others, where the
// program has ThreadSanitizer's runtime (thread_sanitizer.h). The operations of each origin access the memory in a
// fibre of this process, as soon as this process can know that they are complete; ProcessOrder says when that is.
//
// Of an operation, the origin knows two releases (process_order.h): the last one of the target that it had acquired
// before the call, and the first one of its own behind the completion.
// - The fibre continues behind what the target's threads had done at the first of them. So what they have done later is
//   unordered with the operation.
// - When the target acquires the second one, the fibre performs the access, and the acquiring thread continues behind
//   the fibre. So what other threads do without synchronisation is unordered, and what this thread has done before.
//   Performing the access so late loses nothing: the runtime compares it with the accesses that it still knows.
// Operations of fence epochs, and of post-start epochs, are complete with the next fence, and with MPI_Win_wait. A
// fibre is never ahead of its origin, so nothing that is ordered is reported.
//
// Races between operations are found elsewhere (race_finder.h): a fibre that accesses memory continues behind those
// that have accessed it before.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "plugins/verify/process_order.h"
#include "plugins/verify/thread_sanitizer.h"

namespace osc::check {

class TargetFibres;

/// The fibres of all origins, and what the threads of this process have done until each release. Thread-safe; the
/// calling thread is in an IgnoredScope.
class JobFibres {
  public:
    /// Null before make(), and from end() on.
    static JobFibres* mine();
    /// Before the program's other threads call. The memory of `order` stays until end().
    static void make(std::unique_ptr<ProcessOrder> order);
    /// No other thread is in a call of this class, and no window calls any more.
    static void end();

    /// See ProcessOrder. What threads acquire includes what is complete by then.
    void release();
    void acquire(std::span<const std::uint32_t> processes);
    void acquire_all();
    /// Collectives over all processes.
    std::uint64_t enter();
    void leave(std::uint64_t number);

    explicit JobFibres(std::unique_ptr<ProcessOrder> order);

  private:
    friend TargetFibres;
    static constexpr std::size_t kReleases = 1024;  // that are told apart
    struct Origin {
        std::unique_ptr<Fibre> fibre;
        SyncPoint ended;
        std::uint64_t behind = 0;  // the release of this process
    };

    // The mutex is locked.
    std::uint64_t release_now();
    void reach();
    void acquire_now(std::span<const std::uint32_t> processes);
    void advance();

    std::mutex mutex_;
    const std::unique_ptr<ProcessOrder> order_;
    std::vector<std::uint32_t> all_;
    std::vector<Origin> origins_;
    std::array<SyncPoint, kReleases> releases_;
    std::map<std::uint64_t, TargetFibres*> windows_;
    bool told_loss_ = false;
};

/// Part of a ledger, which calls it, in an IgnoredScope.
class TargetFibres {
  public:
    struct Setting {
        std::uint64_t window = 0;              // a number that no other window of its processes has
        std::vector<std::uint32_t> processes;  // of the job, by their ranks in the window
        std::uint32_t me = 0;                  // a rank in the window
        std::int64_t base = 0;                 // the address of displacement 0; 0 if displacements are addresses
        std::int64_t bytes = 0;                // of the memory there
        bool defers_locks = false;             // a lock may be granted later than its call returns
    };
    TargetFibres(JobFibres& job, Setting setting);
    ~TargetFibres();
    TargetFibres(const TargetFibres&) = delete;
    TargetFibres& operator=(const TargetFibres&) = delete;

    /// `epoch`: Access::world and ::exposure of an operation on the target now.
    void before_operation(const Operation& operation);
    void on_operation(const Operation& operation, const Access& epoch);
    void before(const Synchronisation& call);
    void after(const Synchronisation& call);
    /// A call reads a notification counter.
    void on_notification();
    /// All processes have met: after a fence, or, if it is the `last` time, before the window is freed.
    void meet(bool last);

  private:
    friend JobFibres;
    struct Shown {
        std::uint32_t origin;
        RemoteAccess access;
        const void* returns_to;  // the call at the origin, in this process
    };
    struct Exposures {
        std::vector<std::uint64_t> posts;  // the release before each
        std::uint64_t waited = 0;
    };

    bool show(std::uint32_t target, bool results_only);
    bool is_complete(const Shown& shown) const;
    void access_complete();
    void perform(const Shown& shown);
    std::vector<std::uint32_t> in_job(std::span<const std::uint32_t> ranks) const;

    JobFibres& job_;
    const Setting setting_;
    std::map<std::uint32_t, std::vector<RemoteAccess>> pending_;  // of this process, by rank
    std::set<std::uint32_t> results_;                             // ranks with pending operations that have results
    std::map<std::uint32_t, bool> locks_;                         // of this process, by rank; exclusive
    bool lock_all_ = false;
    std::vector<std::uint32_t> started_, posted_;  // processes of the job, of the open epochs
    std::uint64_t post_ = 0;                       // the release before the post that is under way
    std::map<std::uint32_t, Exposures> exposures_;
    std::uint64_t meeting_ = 0;    // the number of the fence, or of the free, that is under way
    bool awaits_results_ = false;  // the call that is under way
    std::uint64_t fences_ = 0;
    bool ended_ = false;
    std::vector<Shown> shown_;  // by others, and not complete yet
    // The window's memory in equal parts, with the fibres that have accessed each.
    std::int64_t part_ = 64;
    std::vector<SyncPoint> parts_;
};

}  // namespace osc::check
