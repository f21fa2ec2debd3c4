// The one interface of the transports: moves bytes to and from one target, and updates its elements atomically.
// An object serves one operation on one target, in one thread; an net::Stream serves all operations on its target, of
// several threads under its mutex. Displacements count bytes from the target's displacement 0 (from address 0 in
// dynamic windows) and have been checked against the window's size.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/fault.h"
#include "op/kernels.h"

namespace osc {

/// How an accumulate-family operation changes elements.
struct Update {
    Basic basic;
    Op op;
    op::Kernel apply;   // target[i] = target[i] op origin[i]
    op::Kernel copy;    // target[i] = origin[i], without padding
    std::size_t width;  // bytes from one element to the next
};

class Transport {
  public:
    virtual ~Transport() = default;

    virtual void put(std::int64_t disp, const void* from, std::size_t bytes) = 0;
    virtual void get(std::int64_t disp, void* to, std::size_t bytes) = 0;

    /// For each of `count` adjacent elements, atomically: result[i] = target[i] (unless `result` is null), then
    /// target[i] = target[i] op origin[i]. Elements of one call are updated in any order.
    virtual void update(const Update& how, std::int64_t disp, const void* origin, void* result, std::size_t count) = 0;

    /// Atomically: result = target, and if target equals compare, target = origin. One element.
    virtual void compare_and_swap(const Update& how, std::int64_t disp, const void* origin, const void* compare,
                                  void* result) = 0;

    /// Ends the operation and returns the first fault. All of it is at the target on return, except that net::Stream
    /// and net::AgentTransport may leave it incomplete (Core::incomplete).
    virtual Fault finish() = 0;
};

}  // namespace osc
