// The accumulates of one operation on memory that is not mapped here: read, computed and written back under the
// target's stripe locks. Pieces are collected and sorted by lock, so that an operation of many small pieces takes one
// lock and one system call each way for hundreds of them, not for each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "op/transport.h"
#include "transport/cma/cma.h"
#include "transport/direct/locked.h"

namespace osc::cma {

/// One operation's, in one thread. Origin and result memory are used until `finish` has returned.
class Updates {
  public:
    /// `base`: address of displacement 0 in process `pid`.
    Updates(pid_t pid, std::uint64_t base, const shm::Stripes& stripes) : pid_(pid), base_(base), stripes_(stripes) {}

    /// As Transport::update. `how` is the same at every call.
    void add(const Update& how, std::int64_t disp, const void* origin, void* result, std::size_t count);
    /// Executes what is left. The first fault met, if any.
    Fault finish();

  private:
    /// Adjacent elements that are updated under one lock.
    struct Portion {
        std::uint64_t disp;
        const std::byte* origin;  // null for Op::NoOp
        std::byte* result;        // null where nothing is returned
        std::uint32_t count;
        std::uint32_t stripe;
    };
    using Order = std::span<std::uint16_t>;  // of portions, by number

    static constexpr std::size_t kFew = 8;
    static constexpr std::size_t kMost = 2048;                                        // collected at a time
    static constexpr std::size_t kRoom = (std::size_t{1} << shm::kStripeShift) + 64;  // see run()

    std::uint64_t end(const Portion& portion) const { return portion.disp + portion.count * how_.width; }
    bool grow();
    void execute();
    void execute_stripe(Order order);
    std::size_t run(const Portion* portions, std::span<const std::uint16_t> order);
    template <class F>
    void place(const Portion* portions, std::span<const std::uint16_t> order, F&& f) const;
    int read(const Portion* portions, std::span<const std::uint16_t> order, std::byte* buffer) const;
    int write(const Portion* portions, std::span<const std::uint16_t> order, std::byte* buffer) const;

    pid_t pid_;
    std::uint64_t base_;
    shm::Stripes stripes_;
    Update how_{};
    Fault fault_ = Fault::None;
    std::size_t count_ = 0;
    std::size_t capacity_ = kFew;
    Portion few_[kFew];
    std::unique_ptr<Portion[]> many_;
    Portion* portions_ = few_;
};

}  // namespace osc::cma
