// Simple operations of several calls, collected and performed together. Updates of single elements in mapped memory
// share one lock for each stripe, and their cache misses overlap: a locked instruction waits for every miss before it.
// A bucket serves one stripe at a time, and updates of one element meet in one bucket, so they stay in the order of
// their calls. Operations on memory that only process_vm_* reaches share locks and calls of the system
// (cma::Collected).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/fault.h"
#include "local/cma_transport.h"
#include "op/kernels.h"
#include "shm/control.h"
#include "sync/lock.h"

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

/// One thread at a time.
class Batch {
  public:
    /// For rank `me`, and as many processes on its node.
    Batch(std::uint32_t me, std::uint32_t processes, sync::Liveness& liveness);

    bool is_empty() const { return used_.empty() && !any_unmapped_; }
    /// Adds an update; performs those of its bucket if that is full or serves another stripe. `key`: the stripe's
    /// number, different for as many stripes as possible.
    void add(std::atomic<std::uint32_t>& stripe, std::size_t key, const ElementUpdate& update) {
        Bucket& bucket = buckets_[key % buckets_.size()];
        if (__builtin_expect(bucket.stripe != &stripe || bucket.count == kMost, 0)) serve(bucket, stripe);
        bucket.updates[bucket.count++] = update;
    }

    /// The operations on memory that is not mapped here. The caller adds one. `index`: a small number of the process.
    cma::Collected& unmapped(std::size_t index, const cma::Place& place);

    /// Performs all operations. Fault::Dead if the holder of a stripe died, or cma::fault_of() the error of an access
    /// to another process; then the mapped updates of that stripe, or the operations on that process, are lost.
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
    std::vector<std::unique_ptr<cma::Collected>> unmapped_;  // by the index of their process
    bool any_unmapped_ = false;                              // some of them are not performed
    std::uint32_t dead_ = kNobody;                           // the dead holder of a stripe
    static constexpr std::uint32_t kNobody = ~std::uint32_t{0};
};

}  // namespace osc::shm
