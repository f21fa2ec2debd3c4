// Collects updates by stripe, and performs those of a stripe under one lock.
#include "local/batch.h"

#include <algorithm>
#include <span>
#include <utility>

#include "local/locked.h"
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

}  // namespace

Batch::Batch(std::uint32_t me, std::uint32_t processes, sync::Liveness& liveness)
    : me_(me), liveness_(liveness), buckets_(std::size_t{kStripes} * std::clamp(processes, 1u, kMostRanks)) {
    used_.reserve(buckets_.size());
}

void Batch::serve(Bucket& bucket, std::atomic<std::uint32_t>& stripe) {
    if (bucket.stripe == nullptr) used_.push_back(&bucket);
    perform(bucket);
    bucket.stripe = &stripe;
}

// The prefetches come before the lock, so that it is held for a short time.
void Batch::perform(Bucket& bucket) {
    const std::span<const ElementUpdate> updates(bucket.updates.data(), std::exchange(bucket.count, 0));
    if (updates.empty()) return;
    for (const ElementUpdate& update : updates)
        prefetch_for_write(update.target);
    std::uint32_t dead = 0;
    if (!sync::stripe_lock(*bucket.stripe, me_, liveness_, dead)) {
        dead_ = dead;
        return;
    }
    for (const ElementUpdate& update : updates)
        update.apply(update.target, &update.operands, 1);
    sync::stripe_unlock(*bucket.stripe);
}

cma::Collected& Batch::unmapped(std::size_t index, const cma::Place& place) {
    if (unmapped_.size() <= index) unmapped_.resize(index + 1);
    if (unmapped_[index] == nullptr) unmapped_[index] = std::make_unique<cma::Collected>(place);
    any_unmapped_ = true;
    return *unmapped_[index];
}

Fault Batch::finish() {
    base::FirstFault first;
    if (std::exchange(any_unmapped_, false)) {
        for (const std::unique_ptr<cma::Collected>& operations : unmapped_)
            if (operations != nullptr) first.note(operations->finish());
    }
    for (Bucket* bucket : used_) {
        perform(*bucket);
        bucket->stripe = nullptr;
    }
    used_.clear();
    if (const std::uint32_t dead = std::exchange(dead_, kNobody); dead != kNobody) first.note(fault_of_dead(dead));
    return first.take();
}

}  // namespace osc::shm
