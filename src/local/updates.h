// The accumulates on memory that is not mapped here: each element is read, computed and written back under the target's
// stripe locks. Portions are collected and sorted by lock, so that hundreds of small ones share one lock and one system
// call each way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "local/cma.h"
#include "local/detour.h"
#include "local/locked.h"
#include "op/transport.h"

namespace osc::cma {

/// For one thread. Operands, results and what add() gets as `how` are in use until finish() has returned.
class Updates {
  public:
    static constexpr std::size_t kMostChunks = 4;  // whose locks it takes together

    /// `detour`: takes what the system refuses; may be null.
    Updates(const Place& place, Detour* detour)
        : pid_(place.pid), base_(place.base), stripes_(place.stripes), detour_(detour) {}

    /// See Transport::update. Updates of one element happen in the order of the calls.
    void add(const Update& how, std::int64_t disp, const void* origin, void* result, std::size_t count);
    /// Executes the remaining portions. Returns the first fault, after which no portion is executed.
    Fault finish();

  private:
    /// Adjacent elements that are updated together: of one chunk, if not alone.
    struct Portion {
        std::uint64_t disp;
        const Update* how;
        const std::byte* origin;  // null for Op::NoOp
        std::byte* result;        // null if the operation returns nothing
        std::byte* copy;          // of the elements, in run()
        std::uint32_t count;
        std::uint32_t stripe;

        std::size_t bytes() const { return count * how->width; }
        std::uint64_t end() const { return disp + bytes(); }
    };
    using Order = std::span<std::uint16_t>;  // indices of portions

    static constexpr std::size_t kFew = 8;
    static constexpr std::size_t kMost = 2048;                                     // portions collected at a time
    static constexpr std::size_t kRoom = (kMostChunks << shm::kStripeShift) + 64;  // see run()

    bool grow();
    void execute();
    void execute_stripe(Order order);
    std::size_t run(Portion* portions, std::span<const std::uint16_t> order);
    void pass(const Portion* portions, std::span<const std::uint16_t> order);

    pid_t pid_;
    std::uint64_t base_;
    shm::Stripes stripes_;
    Detour* detour_;
    Fault fault_ = Fault::None;
    std::size_t count_ = 0;
    std::size_t capacity_ = kFew;
    Portion few_[kFew];
    std::unique_ptr<Portion[]> many_;
    Portion* portions_ = few_;
};

}  // namespace osc::cma
