// The control table of a window: the shared state of its processes on one node, which is one header and one control
// block per process. It lies in the arena of the node's first process, and all of them map it. It contains lock-free
// atomics only, and plain data that is written before a barrier and read after it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/assert.h"
#include "shm/barrier.h"

namespace osc::shm {

inline constexpr std::uint32_t kStripes = 16;
inline constexpr unsigned kStripeShift = 13;  // one stripe lock serves chunks of 8 KiB

/// The MPI lock of one target: see sync/lock.h for the protocol.
struct LockCell {
    std::atomic<std::uint64_t> word{0};
    std::atomic<std::uint32_t> guard{0};  // rank + 1 of the process that edits the queue
    std::uint32_t head = 0;               // rank + 1 of the first waiter, under guard
    std::uint32_t tail = 0;               // rank + 1 of the last waiter, under guard
    std::atomic<std::uint32_t> dead{0};   // rank + 1 of the process whose death broke the lock
};

/// An entry in the queue of a lock. A process has one cell for its own requests.
struct WaitCell {
    std::atomic<std::uint32_t> answer{0};
    std::atomic<std::uint32_t> target{0};  // rank + 1 of the queue's target; changes under that target's guard only
    std::uint32_t next = 0;                // the next cell, see sync/lock.h; under the target's guard, as all below
    std::uint32_t kind = 0;                // the requested sync::LockKind
    std::uint32_t holder = 0;              // rank + 1 of the process that will hold the lock
    std::uint32_t inside_lock_all = 0;     // 1: the process is inside a lock_all, see LockContext::inside_lock_all
    Doorbell bell;
};

/// The lock of one stripe of a target's memory: rank + 1 of its holder, or 0; see sync::kLostStripe.
struct alignas(64) Stripe {
    std::atomic<std::uint32_t> holder{0};
};

/// Where the memory of a process in a window is.
enum class Memory : std::uint32_t {
    None,     // no memory (size 0 or NULL base)
    Shared,   // in an arena, at `offset` of the arena of `arena_rank`
    Private,  // anywhere else in the owner's address space; XPMEM attaches it unless `offset` is kNoOffset
    Mixed,    // like Private, but [shared_first, shared_end) lies in the owner's arena, its first byte at `offset`
    Dynamic,  // in attached regions, which the region table lists
};

inline constexpr std::uint64_t kNoOffset = ~std::uint64_t{0};
/// The place of private memory that XPMEM attaches (shm/attachment.h) is this plus its address, behind all offsets of
/// an arena's file.
inline constexpr std::uint64_t kAttachedOffset = std::uint64_t{1} << 63;

/// A part of a memory range that other processes can map: it lies in the arena's file, or XPMEM attaches it.
struct SharedPart {
    std::uintptr_t first = 0;
    std::uintptr_t end = 0;
    std::uint64_t offset = kNoOffset;  // of `first` in the file, or from kAttachedOffset on
    explicit operator bool() const { return first < end; }
    std::size_t bytes() const { return end - first; }
    bool is_attached() const { return *this && offset >= kAttachedOffset; }
    bool operator==(const SharedPart&) const = default;
};

/// An attached region of a dynamic window. Addresses are the owner's.
struct Region {
    std::uint64_t base;
    std::uint64_t size;        // bytes
    SharedPart shared;         // what other processes can map; empty if no byte
    std::uint64_t number = 0;  // of a region that XPMEM attaches: a later one at the same place has another
    /// All of it is in the arena.
    bool is_whole() const { return shared.bytes() == size && !shared.is_attached(); }
    bool operator==(const Region&) const = default;
};
static_assert(sizeof(Region) % sizeof(std::uint64_t) == 0);

/// One process's part of a window's shared state. Aligned so that two processes never share a cache line.
struct alignas(64) ControlBlock {
    LockCell lock;
    alignas(64) WaitCell wait;
    // The cells in which this process queues at its own lock for processes of other nodes: one for processes that wait
    // their turn, one for processes inside a lock_all.
    alignas(64) WaitCell proxies[2];

    // PSCW: completes received, and the bell of this process's start and wait calls.
    alignas(64) std::atomic<std::uint32_t> completes{0};
    Doorbell pscw_bell;

    // Description, written by the owner before the table's first barrier.
    alignas(64) std::uint64_t base = 0;  // address of displacement 0 in the owner's address space
    std::uint64_t size = 0;              // bytes
    std::uint64_t unit = 1;              // displacement unit
    std::uint64_t offset = kNoOffset;    // offset in the arena of `arena_rank`; see SharedPart for Memory::Private
    std::uint64_t shared_first = 0;      // bytes, for Memory::Mixed
    std::uint64_t shared_end = 0;
    std::uint32_t arena_rank = 0;  // rank in the window's group whose arena holds the memory
    Memory memory = Memory::None;
    std::uint64_t mailbox = 0;  // offset of the agent's mailbox in the owner's arena; 0: no agent serves this window
    std::uint64_t served = 0;   // the agent's number for this window

    // Dynamic windows: the region table, under a sequence lock (odd: being changed).
    alignas(64) std::atomic<std::uint64_t> regions_version{0};
    std::atomic<std::uint64_t> regions_offset{0};  // in the owner's arena
    std::atomic<std::uint64_t> regions_count{0};

    Stripe stripes[kStripes];

    // The last fence of this process after which other processes await it (Epoch::needs_target_fence); pscw_bell rings
    // when it changes.
    std::atomic<std::uint64_t> fences{0};

    // Checked asserts: 1 while MPI_MODE_NOPUT forbids updates of this process's memory, and rank + 1 of a process that
    // has updated it all the same.
    std::atomic<std::uint32_t> no_put{0};
    std::atomic<std::uint32_t> updated{0};
    /// Records an update by `rank`.
    void note_update(std::uint32_t rank) {
        if (__builtin_expect(no_put.load(std::memory_order_relaxed) != 0, 0))
            updated.store(rank + 1, std::memory_order_relaxed);
    }

    // The number of close messages of deferred fences that this process is to receive from other nodes since the
    // window's creation; the node's first process writes it.
    std::uint64_t closes = 0;

    // For the hang reporter: barriers of the window, and barriers of its processes on this node, that this process has
    // entered. Only this process writes them.
    std::atomic<std::uint32_t> barriers{0};
    std::atomic<std::uint32_t> node_barriers{0};

    // This process's notification counters (sync/notify.h): their offset in its arena, and how many it has room for;
    // 0: none. It writes them before a barrier.
    std::atomic<std::uint32_t> notify_room{0};
    std::atomic<std::uint64_t> notify_offset{0};

    // Three words for each 64 ranks of the group follow, with one bit for each rank. posts(): targets whose post this
    // process has received and not consumed. shared_locks(): targets whose shared lock this process holds or requests,
    // by which waiters find a dead holder (the target's lock word only counts holders).
    // started(): targets of the open start, by which the hang reporter finds a missing complete.
    std::atomic<std::uint64_t>& posts(std::uint32_t rank) { return words()[rank / 64 * 3]; }
    std::atomic<std::uint64_t>& shared_locks(std::uint32_t rank) { return words()[rank / 64 * 3 + 1]; }
    std::atomic<std::uint64_t>& started(std::uint32_t rank) { return words()[rank / 64 * 3 + 2]; }
    static constexpr std::uint64_t bit(std::uint32_t rank) { return std::uint64_t{1} << (rank % 64); }
    /// Sets or clears the bit of `rank` in a word that only the block's process writes, one thread at a time.
    static void note(std::atomic<std::uint64_t>& word, std::uint32_t rank, bool set) {
        const std::uint64_t others = word.load(std::memory_order_relaxed) & ~bit(rank);
        word.store(others | (set ? bit(rank) : 0), std::memory_order_release);
    }
    std::atomic<std::uint64_t>* words() {
        return reinterpret_cast<std::atomic<std::uint64_t>*>(reinterpret_cast<std::byte*>(this) + sizeof *this);
    }

    /// The stripe of the byte `offset` of the target's memory.
    static std::uint32_t stripe_number(std::uint64_t byte_offset) {
        const std::uint64_t chunk = byte_offset >> kStripeShift;
        return static_cast<std::uint32_t>((chunk ^ (chunk >> 4)) % kStripes);
    }
    /// By the number times a stripe's size, so that the fast paths do not shift twice.
    std::atomic<std::uint32_t>& stripe_of(std::uint64_t byte_offset) {
        constexpr unsigned kShift = kStripeShift - 6;
        static_assert(sizeof(Stripe) == 1 << 6);
        const std::uint64_t bytes =
            (byte_offset >> kShift ^ byte_offset >> (kShift + 4)) & (kStripes - 1) * sizeof(Stripe);
        return reinterpret_cast<Stripe*>(reinterpret_cast<std::byte*>(stripes) + bytes)->holder;
    }
};

/// All agents are needed if some process of the window sets the first bit and some process the second.
enum AgentNeed : std::uint32_t {
    kUnserved = 1,     // a process exposes memory that is in no arena, and has no agent
    kUnreachable = 2,  // a process cannot use process_vm_* on another
};

/// The header of a control table.
struct alignas(64) ControlTableHeader {
    Barrier barrier;                                  // fences and the window's free
    alignas(64) std::atomic<std::uint32_t> error{0};  // MPI error class of a failed creation, the largest wins
    std::atomic<std::uint32_t> kept{0};               // a process keeps the window: its attribute callback failed
    std::atomic<std::uint32_t> departed{0};           // processes that have left the last barrier
    std::atomic<std::uint32_t> contiguous{0};         // 1: a process of a shared window asks for one segment
    std::atomic<std::uint64_t> segment{0};            // offset + 1 of that segment
    std::atomic<std::uint32_t> agents{0};             // bits of AgentNeed
    // The number of the last even and the last odd deferred fence before which a process of this node had queued
    // operations. Two entries are enough: barriers keep processes at most one such fence apart.
    std::atomic<std::uint64_t> queued_fence[2]{};
    std::atomic<std::uint32_t> fence_strategy{0};  // the largest number that a process asks for
    std::atomic<std::uint32_t> checks{0};          // 1: a process asks for checked asserts
    std::atomic<std::uint32_t> unchecked{0};       // 1: a process does not
    std::atomic<std::uint32_t> checked[3]{};       // asserts or-ed over the processes, by the barrier's number
    std::atomic<std::uint32_t> device{0};          // 1: a process exposes device memory, so the host serves the window
};

/// The data of a fence that the processes of a node give to their first process, and the result that it gives back,
/// between two barriers of the node. Only in windows that span nodes.
struct alignas(64) FenceCounts {
    std::atomic<std::uint32_t> wants{0};  // votes of this node for the next epoch: bits of sync::Want
    std::atomic<std::uint32_t> count{0};  // length of the list of targets
    std::uint32_t wanted = 0;             // result: votes of all nodes
    bool any_closes = false;              // result: a process of this node receives close messages

    // Two words for each process of the window follow: first the number of close messages to each process, then the
    // list of targets with such a message.
    std::atomic<std::uint32_t>* closes() { return reinterpret_cast<std::atomic<std::uint32_t>*>(this + 1); }

    /// Counts a close message to `target`.
    void add(std::uint32_t target, std::uint32_t processes) {
        if (closes()[target].fetch_add(1, std::memory_order_relaxed) != 0) return;
        const std::uint32_t index = count.fetch_add(1, std::memory_order_relaxed);
        closes()[processes + index].store(target, std::memory_order_relaxed);
    }
    /// Calls each(target, closes) for every target, and clears the list.
    template <class Each>
    void take(std::uint32_t processes, Each&& each) {
        const std::uint32_t targets = count.exchange(0, std::memory_order_relaxed);
        for (std::uint32_t i = 0; i < targets; ++i) {
            const std::uint32_t target = closes()[processes + i].load(std::memory_order_relaxed);
            each(target, closes()[target].exchange(0, std::memory_order_relaxed));
        }
    }
};

/// The processes of a window that are on this node, if others are not.
struct LocalRanks {
    static constexpr std::uint32_t kRemote = ~std::uint32_t{0};
    std::vector<std::uint32_t> rank_at;  // rank in the window's group, by index on this node; ascending
    /// A process's index on this node, or kRemote.
    std::uint32_t index_of(std::uint32_t rank) const {
        const auto found = std::ranges::lower_bound(rank_at, rank);
        return found != rank_at.end() && *found == rank ? static_cast<std::uint32_t>(found - rank_at.begin()) : kRemote;
    }
};

/// A window's control table as mapped in this process.
struct ControlTable {
    std::byte* address = nullptr;
    std::size_t stride = 0;
    const LocalRanks* local_ranks = nullptr;  // null: every process is on this node, with its rank as its index

    static std::size_t words_for(std::uint32_t processes) { return (std::size_t{processes} + 63) / 64 * 3; }
    static std::size_t stride_for(std::uint32_t processes) {
        return (sizeof(ControlBlock) + words_for(processes) * sizeof(std::uint64_t) + 63) / 64 * 64;
    }
    /// The table's size for `local` processes on this node of a window of `processes`.
    static std::size_t bytes_for(std::uint32_t local, std::uint32_t processes) {
        const std::size_t blocks = sizeof(ControlTableHeader) + local * stride_for(processes);
        if (local == processes) return blocks;
        return blocks + sizeof(FenceCounts) + (2 * processes * sizeof(std::uint32_t) + 63) / 64 * 64;
    }
    ControlTableHeader& header() const { return *reinterpret_cast<ControlTableHeader*>(address); }
    /// The block of a process on this node.
    ControlBlock& block(std::uint32_t rank) const {
        OSC_ASSERT(is_local(rank));
        const std::uint32_t index = local_ranks != nullptr ? local_ranks->index_of(rank) : rank;
        return *reinterpret_cast<ControlBlock*>(address + sizeof(ControlTableHeader) + index * stride);
    }
    /// Only in a window that spans nodes.
    FenceCounts& fence_counts() const {
        return *reinterpret_cast<FenceCounts*>(address + sizeof(ControlTableHeader) +
                                               local_ranks->rank_at.size() * stride);
    }
    bool is_local(std::uint32_t rank) const {
        return local_ranks == nullptr || local_ranks->index_of(rank) != LocalRanks::kRemote;
    }
    /// The number of the window's `processes` that are on this node.
    std::uint32_t local_count(std::uint32_t processes) const {
        return local_ranks != nullptr ? static_cast<std::uint32_t>(local_ranks->rank_at.size()) : processes;
    }
    std::uint32_t rank_at(std::uint32_t index) const {
        return local_ranks != nullptr ? local_ranks->rank_at[index] : index;
    }
};

/// Constructs the header and the blocks of all processes of this node in place, in memory that reads as zero. What
/// follows for each rank of the group is not touched: in a large window a page gets memory when one of its ranks is
/// used. The node's first process calls it before any other process knows the address.
void construct(const ControlTable& controls, std::uint32_t processes);

}  // namespace osc::shm
