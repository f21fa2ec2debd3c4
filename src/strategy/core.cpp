// Knowing targets.
#include "strategy/core.h"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace osc {

void StateLock::contended() {
    ::sched_yield();
}

namespace {

// A few from the heap; more as a mapping, of which only the touched pages take memory: a window's size does not depend
// on how many processes it has. Zero is a valid Peer.
constexpr std::size_t kFew = 4 * sizeof(Peer);
constexpr std::size_t kPage = 4096;

std::size_t peer_bytes(std::uint32_t processes) {
    return std::size_t{processes} * sizeof(Peer);
}

Peer* make_peers(std::uint32_t processes) {
    const std::size_t bytes = peer_bytes(processes);
    if (bytes <= kFew) {
        void* memory = std::aligned_alloc(alignof(Peer), bytes);
        if (memory == nullptr) throw std::bad_alloc();
        return static_cast<Peer*>(std::memset(memory, 0, bytes));
    }
    void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    return static_cast<Peer*>(memory);
}

// Stands for the block of a process on another node, so that a known target always has one: its lock is never to be
// had, which keeps the fast path of MPI_Win_lock away without a further question.
shm::ControlBlock& elsewhere() {
    static auto* block = [] {
        auto* made = new shm::ControlBlock;
        made->lock.word.store(sync::kBroken | sync::kExclusive, std::memory_order_relaxed);
        return made;
    }();
    return *block;
}

}  // namespace

Core::Core(std::uint32_t rank, std::uint32_t processes)
    : me(rank), size(processes), exclusive(sync::exclusive_word(rank)), peers(make_peers(processes)) {}

Core::~Core() {
    if (peer_bytes(size) <= kFew)
        std::free(peers);
    else
        ::munmap(peers, peer_bytes(size));
}

std::size_t Core::bytes_of_peers() const {
    const std::size_t bytes = peer_bytes(size);
    if (bytes <= kFew) return bytes;
    return known_.load(std::memory_order_relaxed) ? std::min(bytes, kPage) : 0;
}

Peer& Core::know(Peer& entry, std::uint32_t rank) {
    const std::lock_guard lock(know_mutex_);
    if (entry.block.load(std::memory_order_relaxed) != nullptr) return entry;
    known_.store(true, std::memory_order_relaxed);
    shm::ControlBlock& block = here(rank) ? slot.block(rank) : elsewhere();
    entry.rank = rank;
    entry.unit = 1;
    describe(entry, block);
    // A displacement in [0, size / unit] can be multiplied by the unit without overflow.
    entry.full_reach = entry.path == Path::Direct ? entry.size / entry.unit + 1 : 0;
    entry.block.store(&block, std::memory_order_release);
    return entry;
}

// Tells the other nodes what this one's processes have left in the slot, and them what the others have told.
Fault Core::tell_nodes() {
    shm::FenceNews& left = slot.fence_news();
    sync::News news;
    news.wants = left.wants.exchange(0, std::memory_order_relaxed);
    left.take(size, [&](std::uint32_t target, std::uint32_t closes) { news.closes[target] = closes; });
    if (const Fault fault = far_sync->barrier(*this, news); fault != Fault::None) return fault;
    left.wanted = news.wants;
    left.any_closes = !news.closes.empty();
    for (const auto& [target, closes] : news.closes)
        if (here(target)) slot.block(target).closes += closes;
    return Fault::None;
}

// First the node, then the nodes' first processes among each other, then the node again, which learns of it.
bool Core::meet() {
    if (!meet_here()) return false;
    if (far_sync == nullptr) return true;
    if (slot.rank_at(0) == me && tell_nodes() != Fault::None) {
        slot.header().barrier.give_up();  // the others wait here for what they cannot hear of any more
        return false;
    }
    return meet_here();
}

bool Core::meet_here() {
    return slot.header().barrier.arrive_and_wait(slot.count_here(size), [&] { return any_dead() >= 0; });
}

void Core::let_in(std::uint64_t fence, bool ahead) {
    if (far_sync != nullptr) far_sync->opened(fence, ahead);
    if (!epoch.needs_peer_fence && fence != ~std::uint64_t{0}) return;
    mine().fences.exchange(fence, std::memory_order_seq_cst);
    mine().pscw_bell.ring();
}

int Core::any_dead() {
    for (std::uint32_t rank = 0; rank < size; ++rank)
        if (rank != me && !alive(rank)) return static_cast<int>(rank);
    return -1;
}

}  // namespace osc
