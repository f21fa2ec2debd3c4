// Checks asserts. An extra barrier behind each fence exchanges the asserts of all processes. Two words of each control
// block check MPI_MODE_NOPUT: `no_put` says that no process may update, `updated` names a process that has.
// Build: osc_core_cold
#include "core/asserts.h"

namespace osc::epoch {
namespace {

using base::fail;
using sync::LockKind;

// The asserts of a process, or-ed over all processes. The bits do not overlap with sync::Want.
enum Given : std::uint32_t {
    kPrecedes = 4,
    kPrecedesNot = 8,
    kSucceeds = 16,
    kSucceedsNot = 32,
};

// A barrier that ors the bits `mine` of all processes; 0 if a process has died. On one node three words take turns:
// rank 0 clears the next one before the barrier, when no process reads or writes it.
std::uint32_t exchange(Core& core, std::uint32_t mine) {
    if (core.remote_sync != nullptr) {
        core.controls.fence_counts().wants.fetch_or(mine, std::memory_order_relaxed);
        return core.barrier() ? core.controls.fence_counts().wanted : 0;
    }
    shm::ControlTableHeader& header = core.controls.header();
    const std::uint64_t now = core.epoch.checks++;
    std::atomic<std::uint32_t>& word = header.checked[now % 3];
    word.fetch_or(mine, std::memory_order_relaxed);
    if (core.me == 0) header.checked[(now + 1) % 3].store(0, std::memory_order_relaxed);
    return core.barrier() ? word.load(std::memory_order_relaxed) : 0;
}

// Ends the promise of MPI_MODE_NOPUT; a fault if a process has updated this process's memory.
Fault end_promise(Core& core, const char* call) {
    shm::ControlBlock& own = core.mine();
    own.no_put.store(0, std::memory_order_seq_cst);
    const std::uint32_t updater = own.updated.exchange(0, std::memory_order_seq_cst);
    if (updater == 0) return Fault::None;
    return fail(Fault::Assert, "MPI_MODE_NOPUT was given to %s, but rank %u has updated the window of rank %u since",
                call, updater - 1, core.me);
}

void promise(Core& core, unsigned asserts) {
    core.mine().updated.store(0, std::memory_order_relaxed);
    core.mine().no_put.store((asserts & kNoPut) != 0 ? 1 : 0, std::memory_order_seq_cst);
}

// Whether another process holds a conflicting lock.
bool conflicts(Core& core, std::uint32_t rank, LockKind kind) {
    if (core.two_level != nullptr || !core.is_local(rank)) return false;
    const std::uint64_t word = core.target(rank).control().lock.word.load(std::memory_order_acquire);
    if ((word & sync::kBroken) != 0) return false;  // lock() reports it
    return (word & sync::kExclusive) != 0 || (kind == LockKind::Exclusive && (word & sync::kCountMask) != 0);
}

}  // namespace

Fault checked_fence(Core& core, unsigned asserts) {
    const bool precedes = (asserts & kNoPrecede) == 0;
    const bool succeeds = (asserts & kNoSucceed) == 0;
    const bool denied = !precedes && core.epoch.access == Access::FenceUsed;
    const std::uint64_t made = core.epoch.fences;
    const Fault done = fence(core, asserts & kNoSucceed);
    base::FirstFault first;
    first.note(done);
    // A fence that failed ends here. After a mere fault of an operation the other processes go on to the exchange, so
    // this one must take part.
    if (core.epoch.fences == made || core.epoch.fence_failed) return done;
    first.note(end_promise(core, "the fence before"));
    // Set before the barrier of the exchange, and so before any process starts the next epoch.
    promise(core, asserts);
    const std::uint32_t all =
        exchange(core, (precedes ? kPrecedes : kPrecedesNot) | (succeeds ? kSucceeds : kSucceedsNot));
    if (all == 0) return fail(Fault::Dead, "a process died, or its connection is lost; the fence can never complete");
    if (first.is_set()) return first.take();
    if (denied)
        return fail(Fault::Assert, "MPI_MODE_NOPRECEDE, but rank %u has called operations since the last fence",
                    core.me);
    if ((all & (kPrecedes | kPrecedesNot)) == (kPrecedes | kPrecedesNot))
        return fail(Fault::Assert, "some processes gave MPI_MODE_NOPRECEDE to this fence and others did not");
    if ((all & (kSucceeds | kSucceedsNot)) == (kSucceeds | kSucceedsNot))
        return fail(Fault::Assert, "some processes gave MPI_MODE_NOSUCCEED to this fence and others did not");
    return Fault::None;
}

Fault checked_post(Core& core, std::span<const std::uint32_t> origins, unsigned asserts) {
    if (!core.epoch.posted) promise(core, asserts);
    return post(core, origins, asserts & ~unsigned{kNoCheck});
}

Fault checked_start(Core& core, std::span<const std::uint32_t> targets, unsigned asserts) {
    int late = -1;
    const bool promised = (asserts & kNoCheck) != 0;
    if (promised)
        for (const std::uint32_t rank : targets)
            if (core.is_local(rank) &&
                (core.mine().posts(rank).load(std::memory_order_acquire) & shm::ControlBlock::bit(rank)) == 0)
                late = static_cast<int>(rank);
    // This call must not wait for a post: with a false assert the target may post only after it.
    const Fault done = start(core, targets, asserts & ~unsigned{kNoCheck}, !promised);
    if (done != Fault::None || late < 0) return done;
    return fail(Fault::Assert, "MPI_MODE_NOCHECK, but rank %d has not posted yet", late);
}

Fault checked_wait(Core& core) {
    const Fault done = wait(core);
    if (core.epoch.posted) return done;
    if (done == Fault::None) return end_promise(core, "MPI_Win_post");
    promise(core, 0);  // an origin died
    return done;
}

Fault checked_test(Core& core, bool& done) {
    const Fault fault = test(core, done);
    return fault != Fault::None || !done ? fault : end_promise(core, "MPI_Win_post");
}

Fault checked_lock(Core& core, std::uint32_t rank, LockKind kind, unsigned asserts) {
    const bool denied = (asserts & kNoCheck) != 0 && conflicts(core, rank, kind);
    const Fault done = lock(core, rank, kind, 0);
    if (done != Fault::None || !denied) return done;
    return fail(Fault::Assert, "MPI_MODE_NOCHECK, but another process held a conflicting lock on rank %u", rank);
}

Fault checked_lock_all(Core& core, unsigned asserts) {
    int locked = -1;
    if ((asserts & kNoCheck) != 0)
        for (std::uint32_t rank = 0; rank < core.size; ++rank)
            if (conflicts(core, rank, LockKind::Shared)) locked = static_cast<int>(rank);
    // A true assert takes no lock here either: later exclusive locks of other processes would wait for this epoch.
    const Fault done = lock_all(core, locked < 0 ? asserts : 0);
    if (done != Fault::None || locked < 0) return done;
    return fail(Fault::Assert, "MPI_MODE_NOCHECK, but another process held an exclusive lock on rank %d", locked);
}

}  // namespace osc::epoch
