// A run: simple operations on one way's memory without a synchronisation call between them. The operations of a long
// run wait in a batch, which performs them together: docs/STRATEGIES.md#batches.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/fault.h"
#include "base/function_ref.h"
#include "local/batch.h"
#include "local/locked.h"
#include "op/simple.h"
#include "reach/target.h"
#include "shm/control.h"
#include "sync/remote_sync.h"

namespace osc::reach {

/// The process whose operations go the ways of a window: process `me` of `size`. `incomplete` counts what a flush must
/// complete (Core::incomplete). `order` changes with each fast flush, which does not end the ways' runs. `may_batch`:
/// whether the open epoch lets operations on memory that is `mapped` here, or on other memory, wait for the next
/// synchronisation call, which ends the runs then.
struct Origin {
    const std::uint32_t me;
    const std::uint32_t size;
    sync::Liveness& liveness;
    const shm::ControlTable& controls;
    std::atomic<std::uint32_t>& incomplete;
    const std::atomic<std::uint32_t>& order;
    const base::FunctionRef<bool(bool mapped)> may_batch;

    shm::Stripes stripes(shm::ControlBlock& target) const { return {target, me, liveness}; }
};

/// One thread at a time, except take_fault() while nothing is batched.
class Run {
  public:
    explicit Run(const Origin& origin) : origin_(origin) {}

    /// Whether the batch has operations of a long run, and no synchronisation call has come since.
    bool goes_on() const { return is_long_ && order() == order_ && batch_ != nullptr && !batch_->is_empty(); }
    /// A long run has come, and its operations are expected to continue.
    bool is_long() const { return is_long_; }
    /// Whether the open epoch allows a run; ends this one if a synchronisation call has come since.
    bool look(bool mapped) {
        if (!origin_.may_batch(mapped)) return false;
        const std::uint32_t now = order();
        if (std::exchange(order_, now) != now) end();
        return true;
    }
    /// One more operation; whether it may wait in the batch.
    bool lengthen() {
        if (++length_ >= kLong) is_long_ = true;
        return is_long_;
    }
    /// The batch, for one more operation.
    shm::Batch& batch() {
        if (__builtin_expect(batch_ == nullptr || batch_->is_empty(), 0)) begin();
        return *batch_;
    }
    /// Performs the batch, and ends the run; the next one is expected to be as long. A fault stays for take_fault().
    void end() {
        if (length_ == 0) return;
        perform();
        is_long_ = length_ >= kLong;
        length_ = 0;
        ++number_;
    }
    /// The same; the next run is not expected to be long.
    void leave() {
        perform();
        is_long_ = false;
        length_ = 0;
        ++number_;
    }
    /// Of this run; not 0.
    std::uint64_t number() const { return number_; }
    /// Operations that Origin::incomplete counts once have ended, with this fault.
    void note(Fault fault) {
        if (fault == Fault::None || fault_.is_set()) origin_.incomplete.fetch_sub(1, std::memory_order_relaxed);
        fault_.note(fault);
    }
    /// Performs the batch; its first unreported fault.
    Fault take_fault();

  private:
    static constexpr std::uint32_t kLong = 32;  // operations of a run that the next ones are expected to continue

    std::uint32_t order() const { return origin_.order.load(std::memory_order_relaxed); }
    void begin();
    void perform() {
        if (batch_ != nullptr && !batch_->is_empty()) finish_batch();
    }
    void finish_batch();

    const Origin& origin_;
    std::unique_ptr<shm::Batch>
        batch_;  // null before the first long run; Origin::incomplete counts it while it has some
    std::uint64_t length_ = 0;
    std::uint64_t number_ = 1;
    std::uint32_t order_ = 0;
    bool is_long_ = false;
    base::FirstFault fault_;  // unreported, and counted in Origin::incomplete
};

/// The key of an element's stripe for shm::Batch: processes of other nodes have no stripes here.
inline std::size_t batch_key(const Target& target, std::uint64_t offset) {
    return target.local_index * shm::kStripes + shm::ControlBlock::stripe_number(offset);
}
/// Whether a batch can take an update: one element, with an operand that fits.
bool is_batchable(const op::Simple& what);
/// The update of an element at `here`: its address at the target if it is not mapped.
shm::ElementUpdate element_at(std::byte* here, const op::Simple& what);

}  // namespace osc::reach
