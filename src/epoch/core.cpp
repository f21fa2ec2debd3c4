// Knowing targets.
#include "epoch/core.h"

namespace osc {

Core::~Core() {
    for (std::uint32_t i = 0; i < (size + kChunk - 1) / kChunk; ++i)
        delete[] chunks[i].load(std::memory_order_relaxed);
}

Peer& Core::know(std::uint32_t rank) {
    std::atomic<Peer*>& entry = chunks[rank / kChunk];
    Peer* chunk = entry.load(std::memory_order_acquire);
    const std::lock_guard lock(know_mutex_);
    if (chunk == nullptr) {
        chunk = entry.load(std::memory_order_acquire);
        if (chunk == nullptr) {
            chunk = new Peer[kChunk];
            entry.store(chunk, std::memory_order_release);
        }
    }
    Peer& known = chunk[rank % kChunk];
    if (!known.known.load(std::memory_order_relaxed)) {
        known.rank = rank;
        known.block = &slot.block(rank);
        describe(known);
        known.known.store(true, std::memory_order_release);
    }
    return known;
}

int Core::any_dead() {
    for (std::uint32_t rank = 0; rank < size; ++rank)
        if (rank != me && !alive(rank)) return static_cast<int>(rank);
    return -1;
}

}  // namespace osc
