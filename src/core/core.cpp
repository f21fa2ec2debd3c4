// Descriptions of targets, and the barrier of a window.
#include "core/core.h"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/assert.h"
#include "reach/reach.h"

namespace osc {

void StateLock::contended() {
    ::sched_yield();
}

namespace {

// A few targets come from the heap. More come from a mapping, of which only the touched pages take memory: a window's
// resident size does not grow with the number of its processes. Zero bytes are a valid Target. Null without memory.
constexpr std::size_t kFew = 4 * sizeof(Target);
constexpr std::size_t kPage = 4096;

std::size_t target_bytes(std::uint32_t processes) {
    return std::size_t{processes} * sizeof(Target);
}

Target* make_targets(std::uint32_t processes) {
    const std::size_t bytes = target_bytes(processes);
    if (bytes <= kFew) {
        void* memory = std::aligned_alloc(alignof(Target), bytes);
        return memory != nullptr ? static_cast<Target*>(std::memset(memory, 0, bytes)) : nullptr;
    }
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory != MAP_FAILED ? static_cast<Target*>(memory) : nullptr;
}

// The block of every process on another node, so that a described target always has one. Its lock word is never free,
// so the fast path of MPI_Win_lock fails on it without a further test.
shm::ControlBlock& remote_block() {
    static auto* block = [] {
        auto* made = new shm::ControlBlock;
        made->lock.word.store(sync::kBroken | sync::kExclusive, std::memory_order_relaxed);
        return made;
    }();
    return *block;
}

}  // namespace

Core::Core(std::uint32_t rank, std::uint32_t processes, Members& window_members)
    : members(window_members),
      me(rank),
      size(processes),
      exclusive(sync::exclusive_word(rank)),
      targets(make_targets(processes)) {
    epoch.make_room();  // for this process, which a fence opens
}

Core::~Core() {
    if (target_bytes(size) <= kFew)
        std::free(targets);
    else if (targets != nullptr)
        ::munmap(targets, target_bytes(size));
}

std::size_t Core::bytes_of_targets() const {
    const std::size_t bytes = target_bytes(size);
    if (bytes <= kFew) return bytes;
    return known_.load(std::memory_order_relaxed) ? std::min(bytes, kPage) : 0;
}

Target& Core::know(Target& entry, std::uint32_t rank) {
    const std::lock_guard lock(know_mutex_);
    if (entry.block.load(std::memory_order_relaxed) != nullptr) return entry;
    known_.store(true, std::memory_order_relaxed);
    shm::ControlBlock& block = is_local(rank) ? controls.block(rank) : remote_block();
    entry.rank = rank;
    entry.unit = 1;
    if (is_local(rank))
        entry.local_index = controls.local_ranks != nullptr ? controls.local_ranks->index_of(rank) : rank;
    members.describe(entry, block);
    const reach::FastPart part = reach::fast_part(entry.way, block);
    entry.first = static_cast<std::int64_t>((part.first + entry.unit - 1) / entry.unit);
    // The fast paths update elements themselves, so they may not if the network's provider does.
    entry.full_limit = part.opens && !provider_atomics ? part.end + 1 : 0;
    entry.block.store(&block, std::memory_order_release);
    return entry;
}

// Sends the other nodes a summary of this node's FenceCounts, and stores their answers in the control table, where this
// node's processes read them.
Fault Core::exchange_between_nodes() {
    shm::FenceCounts& counts = controls.fence_counts();
    sync::FenceSummary summary;
    summary.wants = counts.wants.exchange(0, std::memory_order_relaxed);
    counts.take(
        size, [&](std::uint32_t rank, std::uint32_t closes) { base::insist([&] { summary.closes[rank] = closes; }); });
    if (const Fault fault = remote_sync->barrier(members, summary); fault != Fault::None) return fault;
    counts.wanted = summary.wants;
    counts.any_closes = !summary.closes.empty();
    for (const auto& [rank, closes] : summary.closes)
        if (is_local(rank)) controls.block(rank).closes += closes;
    return Fault::None;
}

// A barrier of the node; a barrier of the nodes' first processes; a second barrier of the node, which passes their
// result on.
bool Core::barrier() {
    std::atomic<std::uint32_t>& entered = mine().barriers;
    entered.store(entered.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    const shm::WaitScope waits(shm::WaitKind::Barrier, id, me, 0, entered.load(std::memory_order_relaxed));
    if (!node_barrier(&came_last)) return false;
    if (remote_sync == nullptr) return true;
    if (controls.rank_at(0) == me && exchange_between_nodes() != Fault::None) {
        controls.header().barrier.give_up();  // the node's other processes must not wait for a result that cannot come
        return false;
    }
    return node_barrier();
}

bool Core::node_barrier(bool* is_last) {
    std::atomic<std::uint32_t>& entered = mine().node_barriers;
    entered.store(entered.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    const shm::WaitScope waits(shm::WaitKind::Barrier, id, me, 0, mine().barriers.load(std::memory_order_relaxed));
    return controls.header().barrier.arrive_and_wait(
        controls.local_count(size), [&] { return members.dead_in_collective() >= 0; }, is_last);
}

// A fault of one way, or a failed allocation, must not keep the operations of another from being completed, nor a
// process from entering the fence that follows.
Fault Core::complete_by_ways(std::uint32_t rank, reach::Completion until) {
    const shm::WaitScope waits(shm::WaitKind::Operations, id, me, rank);
    base::FirstFault first;
    for (reach::Reach* const way : reaches)
        if (way != nullptr) first.note(base::attempt([&] { return way->complete(rank, until); }));
    return first.take();
}

void Core::announce_fence(std::uint64_t fence, bool ahead) {
    if (remote_sync != nullptr) remote_sync->opened(fence, ahead);
    // The last fence of all; a free of the window that an attribute callback refuses takes it back.
    constexpr std::uint64_t kLast = ~std::uint64_t{0};
    const std::uint64_t before = mine().fences.load(std::memory_order_relaxed);
    if (!epoch.needs_target_fence && fence != kLast && before != kLast) return;
    OSC_ASSERT(before <= fence || before == kLast);
    mine().fences.store(fence, std::memory_order_seq_cst);
    mine().pscw_bell.ring();
}

bool Core::is_consistent() const {
    if (threaded) return true;  // another thread may wait inside a call, between two of its changes
    const bool is_open = epoch.access != Access::None && epoch.access != Access::Fence;
    std::uint32_t locked = 0;
    std::uint32_t touched = 0;
    for (std::uint32_t rank = 0; rank < size; ++rank) {
        const Target& target = targets[rank];
        if (target.block.load(std::memory_order_acquire) == nullptr) continue;
        const bool fast = target.fast_limit.load(std::memory_order_relaxed) != 0;
        if ((fast || target.is_in_run()) && !is_open) return false;
        if ((fast || target.batched) && target.full_limit == 0) return false;
        if (fast && target.batched) return false;
        if (target.held_lock != HeldLock::None) ++locked;
        if (target.touched) ++touched;
    }
    if ((epoch.access == Access::Lock) != (epoch.locks > 0)) return false;
    if (epoch.access == Access::Lock && locked != epoch.locks) return false;
    if (touched > epoch.touched.size()) return false;
    const std::uint32_t below = flushable.load(std::memory_order_relaxed);
    return below == 0 || (below == size && epoch.access == Access::LockAll);
}

int Core::any_dead() const {
    for (std::uint32_t rank = 0; rank < size; ++rank)
        if (rank != me && !members.alive(rank)) return static_cast<int>(rank);
    return -1;
}

}  // namespace osc
