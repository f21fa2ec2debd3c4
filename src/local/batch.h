// Updates of single elements, collected so that the updates of one stripe share one lock. In mapped memory their cache
// misses overlap: a locked instruction waits for every miss before it. In memory that only process_vm_* reaches they
// share a call of the system each way, and small puts and gets there do so too. A bucket serves one stripe at a time,
// and updates of one element meet in one bucket, so they stay in the order of their calls.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/fault.h"
#include "local/moves.h"
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

/// Updates the element at `target`: a reduction kernel, or swap<T>(). The address is the target process's own if the
/// element is not mapped here.
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

    bool is_empty() const { return used_.empty() && !moves_; }
    /// Adds an update; performs those of its bucket if that is full or serves another stripe. `key`: the stripe's
    /// number, different for as many stripes as possible.
    void add(std::atomic<std::uint32_t>& stripe, std::size_t key, const ElementUpdate& update) {
        Bucket& bucket = buckets_[key % buckets_.size()];
        if (__builtin_expect(bucket.stripe != &stripe || bucket.count == kMost, 0)) serve(bucket, stripe, {});
        bucket.updates[bucket.count++] = update;
    }

    /// Where elements are that are not mapped here: in process `pid`, of `width` bytes each, at most 8.
    struct Unmapped {
        pid_t pid = 0;  // 0: mapped
        unsigned width = 0;
        bool operator==(const Unmapped&) const = default;
    };
    /// As add(), for an element that is not mapped here.
    void add_unmapped(std::atomic<std::uint32_t>& stripe, std::size_t key, Unmapped where, const ElementUpdate& update);

    /// The puts and gets in memory of process `pid` that is not mapped here. The caller adds one.
    cma::Moves& moves_of(pid_t pid);

    /// Performs all updates and moves. Fault::Dead if the holder of a stripe died, or cma::fault_of() the error of an
    /// access to another process; the updates of that stripe are lost.
    Fault finish();

  private:
    static constexpr std::uint32_t kMost = 16;       // updates in a bucket
    static constexpr std::uint32_t kMostRanks = 16;  // whose stripes have a bucket each
    static constexpr std::size_t kWidest = 8;        // bytes of an element
    // Elements that lie no further apart are read with all that lies between them, which is faster than one by one.
    static constexpr std::size_t kNear = std::size_t{1} << kStripeShift;
    struct Bucket {
        std::atomic<std::uint32_t>* stripe = nullptr;  // null: not in used_
        std::uint32_t count = 0;
        Unmapped where;
        std::array<ElementUpdate, kMost> updates;
    };
    using Updates = std::span<const ElementUpdate>;
    struct Copies;

    void serve(Bucket& bucket, std::atomic<std::uint32_t>& stripe, Unmapped where);
    void perform(Bucket& bucket);
    void note(int error, pid_t pid);
    static int perform_unmapped(Unmapped where, Updates updates);
    static bool read_together(Unmapped where, Updates updates, Copies& copies);
    static bool read_apart(Unmapped where, Updates updates, Copies& copies);

    const std::uint32_t me_;
    sync::Liveness& liveness_;
    std::vector<Bucket> buckets_;
    std::vector<Bucket> unmapped_;  // as many, from the first add_unmapped() on
    std::vector<Bucket*> used_;
    std::vector<std::unique_ptr<cma::Moves>> moves_of_;  // of each process that had some
    bool moves_ = false;                                 // some of them are not performed
    std::uint32_t dead_ = kNobody;                       // the dead holder of a stripe
    int error_ = 0;                                      // of an access to process unreached_
    pid_t unreached_ = 0;
    static constexpr std::uint32_t kNobody = ~std::uint32_t{0};
};

}  // namespace osc::shm
