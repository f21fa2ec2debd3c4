// Knowing targets.
#include "epoch/core.h"

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

// Up to a page from the heap, when it is needed; more as a mapping. Zero is a valid Peer.
constexpr std::size_t kPage = 4096;
alignas(Peer) const std::byte kNobody[kPage]{};

std::size_t peer_bytes(std::uint32_t processes) {
    return std::size_t{processes} * sizeof(Peer);
}

Peer* nobody() {
    return reinterpret_cast<Peer*>(const_cast<std::byte*>(kNobody));
}

Peer* first_peers(std::uint32_t processes) {
    const std::size_t bytes = peer_bytes(processes);
    if (bytes <= kPage) return nobody();
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
    : me(rank), size(processes), exclusive(sync::exclusive_word(rank)), peers_(first_peers(processes)) {}

Core::~Core() {
    Peer* const peers = peers_.load(std::memory_order_relaxed);
    if (peer_bytes(size) > kPage)
        ::munmap(peers, peer_bytes(size));
    else if (peers != nobody())
        std::free(peers);
}

std::size_t Core::bytes_of_peers() const {
    return peers_.load(std::memory_order_relaxed) == nobody() ? 0 : std::min(peer_bytes(size), kPage);
}

Peer& Core::know(std::uint32_t rank) {
    const std::lock_guard lock(know_mutex_);
    if (peers_.load(std::memory_order_relaxed) == nobody()) {
        void* memory = std::aligned_alloc(alignof(Peer), peer_bytes(size));
        if (memory == nullptr) throw std::bad_alloc();
        peers_.store(static_cast<Peer*>(std::memset(memory, 0, peer_bytes(size))), std::memory_order_release);
    }
    Peer& entry = found(rank);
    if (entry.block.load(std::memory_order_relaxed) != nullptr) return entry;
    shm::ControlBlock& block = here(rank) ? slot.block(rank) : elsewhere();
    entry.rank = rank;
    entry.unit = 1;
    describe(entry, block);
    // A displacement in [0, size / unit] can be multiplied by the unit without overflow.
    entry.full_reach = entry.path == Path::Direct ? entry.size / entry.unit + 1 : 0;
    entry.block.store(&block, std::memory_order_release);
    return entry;
}

// First the node, then the nodes' first processes among each other, then the node again, which learns of it.
bool Core::meet() {
    const std::uint32_t mates = slot.count_here(size);
    shm::Barrier& barrier = slot.header().barrier;
    const auto dead = [&] { return any_dead() >= 0; };
    if (!barrier.arrive_and_wait(mates, dead)) return false;
    if (far_sync == nullptr) return true;
    if (slot.rank_at(0) == me && far_sync->barrier(*this) != Fault::None) {
        barrier.give_up();  // the others wait here for what they cannot hear of any more
        return false;
    }
    return mates == 1 || barrier.arrive_and_wait(mates, dead);
}

int Core::any_dead() {
    for (std::uint32_t rank = 0; rank < size; ++rank)
        if (rank != me && !alive(rank)) return static_cast<int>(rank);
    return -1;
}

}  // namespace osc
