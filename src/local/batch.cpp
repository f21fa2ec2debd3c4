// Collects updates by stripe, and performs those of a stripe under one lock.
#include "local/batch.h"

#include <algorithm>
#include <utility>

#include "local/cma.h"
#include "sync/stripe.h"

namespace osc::shm {
namespace {

// GCC's builtin gives a prefetch for reading on a processor of x86-64's first level, and the write then waits for the
// cache line again if another processor has it. Processors without the instruction ignore it.
inline void prefetch_for_write(const std::byte* address) {
#ifdef __x86_64__
    asm volatile("prefetchw %0" : : "m"(*address));
#else
    __builtin_prefetch(address, 1);
#endif
}

std::uint64_t address_of(const ElementUpdate& update) {
    return reinterpret_cast<std::uint64_t>(update.target);
}

bool overlap(std::uint64_t a, std::uint64_t b, std::uint64_t bytes) {
    return a < b + bytes && b < a + bytes;
}

}  // namespace

// Copies of the elements of a bucket, and where each update finds its own.
struct Batch::Copies {
    alignas(kWidest) std::array<std::byte, kNear + kWidest> bytes;
    std::array<std::byte*, kMost> of;
    int error = 0;
};

Batch::Batch(std::uint32_t me, std::uint32_t processes, sync::Liveness& liveness)
    : me_(me), liveness_(liveness), buckets_(std::size_t{kStripes} * std::clamp(processes, 1u, kMostRanks)) {
    used_.reserve(buckets_.size());
}

void Batch::add_unmapped(std::atomic<std::uint32_t>& stripe, std::size_t key, Unmapped where,
                         const ElementUpdate& update) {
    if (unmapped_.empty()) {
        unmapped_.resize(buckets_.size());
        used_.reserve(2 * buckets_.size());
    }
    Bucket& bucket = unmapped_[key % unmapped_.size()];
    if (bucket.stripe != &stripe || bucket.count == kMost || bucket.where != where) serve(bucket, stripe, where);
    bucket.updates[bucket.count++] = update;
}

void Batch::serve(Bucket& bucket, std::atomic<std::uint32_t>& stripe, Unmapped where) {
    if (bucket.stripe == nullptr) used_.push_back(&bucket);
    perform(bucket);
    bucket.stripe = &stripe;
    bucket.where = where;
}

// The prefetches come before the lock, so that it is held for a short time.
void Batch::perform(Bucket& bucket) {
    const Updates updates(bucket.updates.data(), std::exchange(bucket.count, 0));
    if (updates.empty()) return;
    const bool mapped = bucket.where.pid == 0;
    for (const ElementUpdate& update : mapped ? updates : Updates())
        prefetch_for_write(update.target);
    std::uint32_t dead = 0;
    if (!sync::stripe_lock(*bucket.stripe, me_, liveness_, dead)) {
        dead_ = dead;
        return;
    }
    if (mapped) {
        for (const ElementUpdate& update : updates)
            update.apply(update.target, &update.operands, 1);
    } else {
        note(perform_unmapped(bucket.where, updates), bucket.where.pid);
    }
    sync::stripe_unlock(*bucket.stripe);
}

// Reads the elements, updates the copies, and writes these back. Under the stripe's lock. Returns 0 or errno.
int Batch::perform_unmapped(Unmapped where, Updates updates) {
    Copies copies;
    if (!read_together(where, updates, copies) && !read_apart(where, updates, copies)) {
        for (std::size_t i = 0; i < updates.size() && copies.error == 0; ++i)
            copies.error = perform_unmapped(where, updates.subspan(i, 1));
        return copies.error;
    }
    if (copies.error != 0) return copies.error;
    cma::Batch writes(cma::Direction::Write, where.pid);
    for (std::size_t i = 0; i < updates.size(); ++i) {
        updates[i].apply(copies.of[i], &updates[i].operands, 1);
        const auto before = std::span(copies.of).first(i);
        if (std::ranges::find(before, copies.of[i]) == before.end())
            writes.add(address_of(updates[i]), copies.of[i], where.width);
    }
    // So only finish() writes, and no piece before its last update.
    static_assert(kMost < cma::Batch::kPieces);
    return writes.finish();
}

// One piece, with all bytes between the elements. False if they lie too far apart, or if the piece cannot be read: a
// window over a large part of the address space may have a hole between two elements.
bool Batch::read_together(Unmapped where, Updates updates, Copies& copies) {
    std::uint64_t lowest = address_of(updates.front());
    std::uint64_t highest = lowest;
    for (const ElementUpdate& update : updates) {
        lowest = std::min(lowest, address_of(update));
        highest = std::max(highest, address_of(update));
    }
    if (highest - lowest > kNear) return false;
    for (std::size_t i = 0; i < updates.size(); ++i)
        copies.of[i] = copies.bytes.data() + (address_of(updates[i]) - lowest);
    const std::uint64_t bytes = highest - lowest + where.width;
    return cma::transfer(cma::Direction::Read, where.pid, lowest, copies.bytes.data(), bytes) == 0;
}

// A piece for each element. False if one overlaps another without being the same.
bool Batch::read_apart(Unmapped where, Updates updates, Copies& copies) {
    cma::Batch reads(cma::Direction::Read, where.pid);
    for (std::size_t i = 0; i < updates.size(); ++i) {
        const std::uint64_t address = address_of(updates[i]);
        copies.of[i] = copies.bytes.data() + i * kWidest;
        std::size_t other = 0;
        while (other < i && !overlap(address, address_of(updates[other]), where.width))
            ++other;
        if (other == i)
            reads.add(address, copies.of[i], where.width);
        else if (address == address_of(updates[other]))
            copies.of[i] = copies.of[other];
        else
            return false;
    }
    copies.error = reads.finish();
    return true;
}

void Batch::note(int error, pid_t pid) {
    if (error == 0 || error_ != 0) return;
    error_ = error;
    unreached_ = pid;
}

cma::Moves& Batch::moves_of(pid_t pid) {
    moves_ = true;
    for (const std::unique_ptr<cma::Moves>& moves : moves_of_)
        if (moves->pid() == pid) return *moves;
    return *moves_of_.emplace_back(std::make_unique<cma::Moves>(pid));
}

Fault Batch::finish() {
    if (std::exchange(moves_, false)) {
        for (const std::unique_ptr<cma::Moves>& moves : moves_of_)
            note(moves->finish(), moves->pid());
    }
    for (Bucket* bucket : used_) {
        perform(*bucket);
        bucket->stripe = nullptr;
    }
    used_.clear();
    const std::uint32_t dead = std::exchange(dead_, kNobody);
    const int error = std::exchange(error_, 0);
    if (dead == kNobody) return cma::fault_of(error, unreached_);
    return base::fail(Fault::Dead, "rank %u died in the middle of an accumulate; its target's data is lost", dead);
}

}  // namespace osc::shm
