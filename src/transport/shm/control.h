// What the processes of a node share about one window: a slot with one header and one control block per process.
// The slot lives in the arena of the window's first process; everybody maps it. Only lock-free atomics and plain data
// that is written before a barrier and read after it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "transport/shm/barrier.h"

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

/// The place of one process in the queue of the lock it waits for.
struct WaitCell {
    std::atomic<std::uint32_t> answer{0};
    std::atomic<std::uint32_t> target{0};  // rank + 1 in whose queue it stands; so set and unset under that one's guard
    std::uint32_t next = 0;                // the next cell, see sync/lock.h; under the target's guard, as all below
    std::uint32_t kind = 0;                // what it waits for
    std::uint32_t holder = 0;              // rank + 1 of the process that will hold the lock
    std::uint32_t passing = 0;             // 1: it is inside a lock_all, see LockContext::inside_lock_all
    Doorbell bell;
};

/// The lock of one stripe of a target's memory; holds rank + 1 of its holder.
struct alignas(64) Stripe {
    std::atomic<std::uint32_t> holder{0};
};

/// How the memory of a process in a window is reached.
enum class Memory : std::uint32_t {
    None,     // no memory (size 0 or NULL base)
    Shared,   // in an arena: offset and owner say where
    Private,  // anywhere else in the owner's address space
    Dynamic,  // regions attached one by one: the region table says where
};

/// An attached region of a dynamic window.
struct Region {
    std::uint64_t base;    // address in the owner's address space
    std::uint64_t size;    // bytes
    std::uint64_t offset;  // offset in the owner's arena, or kNoOffset
};
inline constexpr std::uint64_t kNoOffset = ~std::uint64_t{0};

/// One process's part of a window's shared state. Aligned so that neighbours never share a line.
struct alignas(64) ControlBlock {
    LockCell lock;
    alignas(64) WaitCell wait;
    // The cells in which this process stands in its own lock's queue for processes of other nodes: one for those that
    // wait their turn, one for those that are inside a lock_all.
    alignas(64) WaitCell away[2];

    // PSCW: completes received, and the bell of this process's start and wait calls.
    alignas(64) std::atomic<std::uint32_t> completes{0};
    Doorbell pscw_bell;

    // Description, written by the owner before the creation's second barrier.
    alignas(64) std::uint64_t base = 0;  // address of displacement 0 in the owner's address space
    std::uint64_t size = 0;              // bytes
    std::uint64_t unit = 1;              // displacement unit
    std::uint64_t offset = kNoOffset;    // offset in the arena of `arena_rank`, for Memory::Shared
    std::uint32_t arena_rank = 0;        // rank in the window's group whose arena holds the memory
    Memory memory = Memory::None;
    std::uint64_t mailbox = 0;  // offset of the owner's agent's mailbox in the owner's arena; 0: no agent serves this
    std::uint64_t served = 0;   // the agent's number of this window

    // Dynamic windows: the region table, under a sequence lock (odd: being changed).
    alignas(64) std::atomic<std::uint64_t> regions_version{0};
    std::atomic<std::uint64_t> regions_offset{0};  // in the owner's arena
    std::atomic<std::uint64_t> regions_count{0};

    Stripe stripes[kStripes];

    // The last fence that this process has made, of those behind which others await it (Epoch::apart); rung by
    // pscw_bell.
    std::atomic<std::uint64_t> fences{0};

    // Checked asserts: that nobody may update this process's memory, and rank + 1 of one that has.
    std::atomic<std::uint32_t> no_put{0};
    std::atomic<std::uint32_t> updated{0};
    /// Somebody updates it.
    void note_update(std::uint32_t rank) {
        if (__builtin_expect(no_put.load(std::memory_order_relaxed) != 0, 0))
            updated.store(rank + 1, std::memory_order_relaxed);
    }

    // How often processes of other nodes will have ended epochs of fences on this one; by the node's first process.
    std::uint64_t closes = 0;

    // Two words for each 64 ranks of the group follow: the posts that this process has received and not yet consumed,
    // and the targets whose shared lock it holds or asks for, so that a waiter can tell a dead holder (the lock word of
    // a target only counts them). A bit for each rank.
    std::atomic<std::uint64_t>& posts(std::uint32_t rank) { return words()[rank / 64 * 2]; }
    std::atomic<std::uint64_t>& shared_locks(std::uint32_t rank) { return words()[rank / 64 * 2 + 1]; }
    static constexpr std::uint64_t bit(std::uint32_t rank) { return std::uint64_t{1} << (rank % 64); }
    std::atomic<std::uint64_t>* words() {
        return reinterpret_cast<std::atomic<std::uint64_t>*>(reinterpret_cast<std::byte*>(this) + sizeof *this);
    }

    /// The stripe of the byte `offset` of the target's memory.
    static std::uint32_t stripe_number(std::uint64_t byte_offset) {
        const std::uint64_t chunk = byte_offset >> kStripeShift;
        return static_cast<std::uint32_t>((chunk ^ (chunk >> 4)) % kStripes);
    }
    std::atomic<std::uint32_t>& stripe_of(std::uint64_t byte_offset) {
        return stripes[stripe_number(byte_offset)].holder;
    }
};

/// Agents are started where both are true of some processes of the window.
enum AgentNeed : std::uint32_t {
    kUnshared = 1,     // a process exposes memory that is in no arena
    kUnreachable = 2,  // a process cannot use process_vm_* on another
};

/// The header of a slot.
struct alignas(64) SlotHeader {
    Barrier barrier;                                  // fences and the window's free
    alignas(64) std::atomic<std::uint32_t> error{0};  // MPI error class of a failed creation, the largest wins
    std::atomic<std::uint32_t> kept{0};               // a process still has the window: its attribute callback failed
    std::atomic<std::uint32_t> departed{0};           // processes that have left the last barrier
    std::atomic<std::uint64_t> segment{0};            // offset + 1 of the common segment of a contiguous shared window
    std::atomic<std::uint32_t> agents{0};             // whether creation must start agents: bits of AgentNeed
    // By the parity of a deferred fence's number, that number, if a process of this node had put operations off. A
    // process can be one such fence ahead, not two: they meet.
    std::atomic<std::uint64_t> put_off[2]{};
    std::atomic<std::uint32_t> fence_strategy{0};  // the last in the table that a process wants
    std::atomic<std::uint32_t> checks{0};          // whether one of them wants asserts to be checked
    std::atomic<std::uint32_t> checked[3]{};       // what they tell of asserts, by the meeting's number
    std::atomic<std::uint32_t> device{0};          // a process's memory is a device's: the host serves the window
};

/// What the processes of a node tell their first one at a fence, and it them, between barriers of the node; in windows
/// that span nodes.
struct alignas(64) FenceNews {
    std::atomic<std::uint32_t> wants{0};  // what the next epoch should be: sync::Want, of some process each
    std::atomic<std::uint32_t> count{0};  // of the list
    std::uint32_t wanted = 0;             // the same of all nodes; told to all
    bool any_closes = false;              // on a process of this node

    // Two words for each process of the window follow: how many have closed an epoch to it, and the list of those to
    // whom somebody has.
    std::atomic<std::uint32_t>* closes() { return reinterpret_cast<std::atomic<std::uint32_t>*>(this + 1); }

    /// This process has closed an epoch to `target`.
    void add(std::uint32_t target, std::uint32_t processes) {
        if (closes()[target].fetch_add(1, std::memory_order_relaxed) != 0) return;
        const std::uint32_t place = count.fetch_add(1, std::memory_order_relaxed);
        closes()[processes + place].store(target, std::memory_order_relaxed);
    }
    /// Takes all away: take(target, closes).
    template <class Take>
    void take(std::uint32_t processes, Take&& each) {
        const std::uint32_t targets = count.exchange(0, std::memory_order_relaxed);
        for (std::uint32_t i = 0; i < targets; ++i) {
            const std::uint32_t target = closes()[processes + i].load(std::memory_order_relaxed);
            each(target, closes()[target].exchange(0, std::memory_order_relaxed));
        }
    }
};

/// The processes of a window that are on this node, where not all are.
struct Places {
    static constexpr std::uint32_t kElsewhere = ~std::uint32_t{0};
    std::span<const std::uint32_t> place_of;  // rank in the window's group -> number on this node, or kElsewhere
    std::vector<std::uint32_t> rank_at;       // the reverse
};

/// A window's slot as this process sees it.
struct Slot {
    std::byte* address = nullptr;
    std::size_t stride = 0;
    const Places* places = nullptr;  // null: every process is on this node, with its rank as its number

    static std::size_t words_for(std::uint32_t processes) { return (std::size_t{processes} + 63) / 64 * 2; }
    static std::size_t stride_for(std::uint32_t processes) {
        return (sizeof(ControlBlock) + words_for(processes) * sizeof(std::uint64_t) + 63) / 64 * 64;
    }
    /// For `here` processes on this node of a window of `processes`.
    static std::size_t bytes_for(std::uint32_t here, std::uint32_t processes) {
        const std::size_t blocks = sizeof(SlotHeader) + here * stride_for(processes);
        if (here == processes) return blocks;
        return blocks + sizeof(FenceNews) + (2 * processes * sizeof(std::uint32_t) + 63) / 64 * 64;
    }
    SlotHeader& header() const { return *reinterpret_cast<SlotHeader*>(address); }
    /// Of a process on this node.
    ControlBlock& block(std::uint32_t rank) const {
        const std::uint32_t place = places != nullptr ? places->place_of[rank] : rank;
        return *reinterpret_cast<ControlBlock*>(address + sizeof(SlotHeader) + place * stride);
    }
    /// Of a window that spans nodes.
    FenceNews& fence_news() const {
        return *reinterpret_cast<FenceNews*>(address + sizeof(SlotHeader) + places->rank_at.size() * stride);
    }
    bool here(std::uint32_t rank) const { return places == nullptr || places->place_of[rank] != Places::kElsewhere; }
    /// How many of `processes` are on this node, and their ranks.
    std::uint32_t count_here(std::uint32_t processes) const {
        return places != nullptr ? static_cast<std::uint32_t>(places->rank_at.size()) : processes;
    }
    std::uint32_t rank_at(std::uint32_t place) const { return places != nullptr ? places->rank_at[place] : place; }
};

/// Constructs the header and the blocks of all processes that are on this node in place; by the slot's creator, before
/// anyone else knows the address.
void construct(const Slot& slot, std::uint32_t processes);

}  // namespace osc::shm
