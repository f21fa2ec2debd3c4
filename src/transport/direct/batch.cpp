// Collects updates by stripe, and performs those of a stripe under one lock.
#include "transport/direct/batch.h"

#include <algorithm>
#include <utility>

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

bool update_now(std::atomic<std::uint32_t>& stripe, const ElementUpdate& update, std::uint32_t me,
                sync::Liveness& liveness) {
    std::uint32_t dead = 0;
    if (!sync::stripe_lock(stripe, me, liveness, dead)) return false;
    update.apply(update.target, &update.operands, 1);
    sync::stripe_unlock(stripe);
    return true;
}

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
    const std::uint32_t count = std::exchange(bucket.count, 0);
    if (count == 0) return;
    for (std::uint32_t i = 0; i < count; ++i)
        prefetch_for_write(bucket.updates[i].target);
    std::uint32_t dead = 0;
    if (!sync::stripe_lock(*bucket.stripe, me_, liveness_, dead)) {
        dead_ = dead;
        return;
    }
    for (std::uint32_t i = 0; i < count; ++i) {
        const ElementUpdate& update = bucket.updates[i];
        update.apply(update.target, &update.operands, 1);
    }
    sync::stripe_unlock(*bucket.stripe);
}

Fault Batch::finish() {
    for (Bucket* bucket : used_) {
        perform(*bucket);
        bucket->stripe = nullptr;
    }
    used_.clear();
    const std::uint32_t dead = std::exchange(dead_, kNobody);
    if (dead == kNobody) return Fault::None;
    return base::fail(Fault::Dead, "rank %u died in the middle of an accumulate; its target's data is lost", dead);
}

}  // namespace osc::shm
