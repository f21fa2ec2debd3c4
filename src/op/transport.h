// The one interface of the transports: moves bytes to and from one target, and updates its elements atomically.
// An object serves one operation on one target, in one thread; an net::Stream serves all operations on its target, of
// several threads under its mutex. Displacements count bytes from the target's displacement 0 (from address 0 in
// dynamic windows) and have been checked against the window's size.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/fault.h"
#include "op/cursor.h"
#include "op/kernels.h"

namespace osc {

/// How an accumulate-family operation changes elements.
struct Update {
    Basic basic;
    Op op;
    op::Kernel apply;   // target[i] = target[i] op origin[i]
    op::Kernel copy;    // target[i] = origin[i], without padding
    std::size_t width;  // bytes from one element to the next
    /// Of a compare and swap, which has one element and Op::None: what the element must equal to be replaced. Else
    /// null.
    const void* compare = nullptr;
};

/// Changes `count` adjacent elements at `target`, which nothing else changes meanwhile: result[i] = target[i] (unless
/// `result` is null), then target[i] = target[i] op origin[i]. False if the elements stay as they are.
inline bool change(const Update& how, void* target, const void* origin, void* result, std::size_t count) {
    const bool replaces = how.compare != nullptr && op::equal(how.basic, target, how.compare);
    if (result != nullptr) how.copy(result, target, count);
    if (how.compare != nullptr ? !replaces : how.op == Op::NoOp) return false;
    op::run_aligned(replaces ? how.copy : how.apply, target, origin, count, how.width);
    return true;
}

namespace op {
struct Call;
}

class Transport {
  public:
    virtual ~Transport() = default;

    void put(std::int64_t disp, const void* from, std::size_t bytes) {
        move(true, disp, const_cast<void*>(from), bytes);
    }
    void get(std::int64_t disp, void* to, std::size_t bytes) { move(false, disp, to, bytes); }
    /// A put of `memory`, which stays as it is, if `write`; else a get to it.
    virtual void move(bool write, std::int64_t disp, void* memory, std::size_t bytes) = 0;

    /// A put or get, whose target's displacements count from `start`: move() for each piece that is contiguous on both
    /// sides.
    virtual void move_all(const op::Call& call, std::int64_t start);

    /// change() for each of `count` adjacent elements, atomically. Elements of one call are updated in any order. All
    /// arguments are in use until finish().
    virtual void update(const Update& how, std::int64_t disp, const void* origin, void* result, std::size_t count) = 0;

    /// update() for `bytes` bytes of elements at `target`, which counts from `start`; `origin` and `result` are arrays,
    /// or null.
    virtual void update_all(const Update& how, std::int64_t start, op::Cursor target, const std::byte* origin,
                            std::byte* result, std::size_t bytes) {
        for (std::size_t done = 0; done < bytes && !target.done();) {
            const std::size_t ahead = target.bytes();
            update(how, start + target.offset(), origin != nullptr ? origin + done : nullptr,
                   result != nullptr ? result + done : nullptr, ahead / how.width);
            done += ahead;
            target.advance(ahead);
        }
    }

    /// Ends the operation and returns the first fault. All of it is at the target on return, except that net::Stream
    /// and net::AgentTransport may leave it incomplete (Core::incomplete).
    virtual Fault finish() = 0;
};

}  // namespace osc
