// One target of a window, as this process knows it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/assert.h"
#include "shm/control.h"
#include "stats/counters.h"

namespace osc {

namespace net {
class Stream;
}
namespace shm {
class RegionView;
}

/// How this process reaches the memory of a target; each way but Unknown is a class of this room.
enum class Way : std::uint8_t {
    Unknown,
    Mapped,   // load and store: shared memory, or this process's own memory
    Mixed,    // load and store for whole pages that the target shares, else as Private
    Private,  // process_vm_readv and process_vm_writev, or messages to the target's agent
    Regions,  // chosen for each attached region
    Net,      // the network: the target is on another node
};
constexpr std::size_t kWays = 6;

/// All of the target's memory is mapped here.
constexpr bool is_mapped(Way way) {
    return way == Way::Mapped;
}
/// The target is on another node.
constexpr bool is_remote(Way way) {
    return way == Way::Net;
}

/// The lock that this process holds on a target.
/// ExclusiveInUse: exclusive, and operations may be incomplete; the fast unlock rejects this state.
/// SharedDeferred, ExclusiveDeferred: MPI_Win_lock has returned, but the lock is not requested yet; the window queues
/// operations.
/// SharedTwoLevel, ExclusiveTwoLevel: held in the two-level scheme; operations need no further check, as with NoCheck.
enum class HeldLock : std::uint8_t {
    None,
    Shared,
    Exclusive,
    ExclusiveInUse,
    NoCheck,
    SharedDeferred,
    ExclusiveDeferred,
    SharedTwoLevel,
    ExclusiveTwoLevel,
};

/// The post of a target for the open start.
enum class Post : std::uint8_t { Open, Awaited, Taken };

/// This process's description of one target. All zero until Core::target() fills it; `block` is set last. The
/// description is then valid for the window's life.
struct alignas(64) Target {
    /// The fast path may load and store at `base` without asking the epoch, from displacement `first` to the byte
    /// before this less one. 0 if no epoch is open, or if no memory is mapped here;
    /// for Way::Regions 1, which no displacement passes.
    std::atomic<std::uint64_t> fast_limit;
    union {
        std::byte* base;           // displacement 0 as mapped here, for Way::Mapped and Mixed
        shm::RegionView* regions;  // for Way::Regions
        net::Stream* stream;       // for Way::Net, once used
    };
    std::uint64_t unit;        // displacement unit, bytes
    std::int64_t first;        // displacement; not 0 for Way::Mixed, if the first bytes are not mapped, and Regions
    std::uint64_t full_limit;  // value of `fast_limit` while an epoch is open
    std::atomic<shm::ControlBlock*> block;  // null: this description is not filled yet
    std::uint32_t rank;
    Way way;
    HeldLock held_lock;
    bool started;  // in the group of the open start
    bool touched;  // in epoch.touched
    std::atomic<Post> post;
    bool batched;               // closed for the fast paths while its epoch is open, because its updates are batched
    bool unmapped_run;          // some of its memory is not mapped here, and operations on that are batched
    std::uint32_t local_index;  // among the window's processes on this node; 0 for one on another node

    /// Whether [`first`, `limit` - 1) contains `bytes` bytes at displacement `disp`; `offset` is then their distance
    /// from displacement 0. The first comparison leaves no negative displacement, so no difference overflows.
    bool contains(std::int64_t disp, std::int64_t bytes, std::uint64_t limit, std::uint64_t& offset) const {
        std::int64_t at = 0;
        if (!__builtin_expect(disp >= first, 1)) return false;
        if (!__builtin_expect(!__builtin_mul_overflow(disp, static_cast<std::int64_t>(unit), &at), 1)) return false;
        offset = static_cast<std::uint64_t>(at);
        return __builtin_expect(bytes < static_cast<std::int64_t>(limit) - at, 1);
    }
    /// Opens or closes the target for the fast path.
    void allow() {
        OSC_ASSERT(!batched);
        fast_limit.store(full_limit, std::memory_order_release);
    }
    void close() { fast_limit.store(0, std::memory_order_relaxed); }
    /// Closes it because its epoch ends.
    void forbid() {
        close();
        batched = false;
        unmapped_run = false;
    }
    /// How the bytes of this thread's last operation on the target have travelled. The fast paths note nothing, so
    /// after them it is right only where all memory is mapped.
    stats::DataPath last_path() const { return is_mapped(way) ? stats::DataPath::LoadStore : stats::t_path; }
    /// Whether other operations than those of the run must let it be performed first.
    bool is_in_run() const { return batched || unmapped_run; }
    shm::ControlBlock& control() const { return *block.load(std::memory_order_relaxed); }
};
static_assert(sizeof(Target) == 64);

}  // namespace osc
