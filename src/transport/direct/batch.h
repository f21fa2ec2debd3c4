// Updates of single elements in mapped memory, collected so that the updates of one stripe share one lock and their
// cache misses overlap: a locked instruction waits for every miss before it. A bucket serves one stripe at a time, and
// updates of one element meet in one bucket, so they stay in the order of their calls.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/fault.h"
#include "op/kernels.h"
#include "sync/lock.h"
#include "transport/shm/control.h"

namespace osc::shm {

/// What an update needs beside its target. The kernel of the update gets the address of `origin`.
struct Operands {
    std::uint64_t origin;   // copies of the program's operands, of 8 bytes or less
    std::uint64_t compare;  // compare and swap
    void* result;           // compare and swap
};

/// Updates the element at `target`: a reduction kernel, or swap<T>().
struct ElementUpdate {
    std::byte* target;
    op::Kernel apply;
    Operands operands;
};

/// The kernel of a compare and swap: `operands` is the address of the Operands.
template <class T>
void swap(void* target, const void* operands, std::size_t) {
    const auto& with = *static_cast<const Operands*>(operands);
    T old;
    T compare;
    __builtin_memcpy(&old, target, sizeof old);
    __builtin_memcpy(&compare, &with.compare, sizeof compare);
    if (old == compare) __builtin_memcpy(target, &with.origin, sizeof old);
    __builtin_memcpy(with.result, &old, sizeof old);
}

/// Performs one update at once; false if the stripe's holder died.
bool update_now(std::atomic<std::uint32_t>& stripe, const ElementUpdate& update, std::uint32_t me,
                sync::Liveness& liveness);

/// One thread at a time.
class Batch {
  public:
    /// For rank `me`, and as many processes on its node.
    Batch(std::uint32_t me, std::uint32_t processes, sync::Liveness& liveness);

    bool is_empty() const { return used_.empty(); }
    /// Adds an update; performs those of its bucket if that is full or serves another stripe. `key`: the stripe's
    /// number, different for as many stripes as possible.
    void add(std::atomic<std::uint32_t>& stripe, std::size_t key, const ElementUpdate& update) {
        Bucket& bucket = buckets_[key % buckets_.size()];
        if (__builtin_expect(bucket.stripe != &stripe || bucket.count == kMost, 0)) serve(bucket, stripe);
        bucket.updates[bucket.count++] = update;
    }
    /// Performs all updates. Fault::Dead if the holder of a stripe died; its updates are lost.
    Fault finish();

  private:
    static constexpr std::uint32_t kMost = 16;       // updates in a bucket
    static constexpr std::uint32_t kMostRanks = 16;  // whose stripes have a bucket each
    struct Bucket {
        std::atomic<std::uint32_t>* stripe = nullptr;  // null: not in used_
        std::uint32_t count = 0;
        std::array<ElementUpdate, kMost> updates;
    };

    void serve(Bucket& bucket, std::atomic<std::uint32_t>& stripe);
    void perform(Bucket& bucket);

    const std::uint32_t me_;
    sync::Liveness& liveness_;
    std::vector<Bucket> buckets_;
    std::vector<Bucket*> used_;
    std::uint32_t dead_ = kNobody;  // the dead holder of a stripe
    static constexpr std::uint32_t kNobody = ~std::uint32_t{0};
};

}  // namespace osc::shm
