// How operations reach the memory of targets: one class and one file for each way, and in a window one object. The way
// of a target is chosen once, when this process first uses it (Core::target), and every operation outside the fast
// paths is one call of that object.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/fault.h"
#include "local/direct.h"
#include "net/origin/completion.h"
#include "op/simple.h"
#include "reach/run.h"
#include "reach/target.h"
#include "shm/activity.h"
#include "shm/arena.h"

namespace osc::reach {

/// What became of an operation.
struct Outcome {
    Fault fault = Fault::None;
    bool served = true;      // false: nothing is done
    bool in_flight = false;  // it may be incomplete at the target: the window must complete it (Core::complete_ops)
    stats::DataPath path = stats::DataPath::LoadStore;  // how its bytes travel
};
inline constexpr Outcome kNotServed{.served = false};

/// What an operation asks for beside its call.
struct Extras {
    net::PendingOp* pending = nullptr;  // not null: the operation may still use its buffers when perform() returns,
                                        // until the completion that this then refers to
    std::uint32_t notification = net::kNoNotification;  // of a target on another node: the counter that it increments
};

/// What complete() waits for: operations to be complete at their targets, or only to use no buffer of the origin.
enum class Completion : std::uint8_t { AtTarget, AtOrigin };
using shm::kEveryTarget;

/// The processes of this node, as a window's ways see them.
class Node {
  public:
    virtual ~Node() = default;
    virtual shm::PeerArena& arena_of(std::uint32_t rank) const = 0;
    /// The same, for users that may outlive the window.
    virtual std::shared_ptr<shm::PeerArena> arena(std::uint32_t rank) const = 0;
    /// Maps a piece of a process's arena; null with errno if that fails.
    virtual std::byte* map(std::uint32_t rank, std::uint64_t offset, std::size_t bytes) const = 0;
    virtual void unmap(std::uint32_t rank, std::uint64_t offset, std::byte* address, std::size_t bytes) const = 0;
    /// The process, if process_vm_* reaches its memory; else 0. Probed once.
    virtual pid_t pid_of(std::uint32_t rank) const = 0;
    /// The system has refused process_vm_*: pid_of() is 0 from now on.
    virtual void lose_pid(std::uint32_t rank) const = 0;
};

/// One way. Thread-safe as operations of MPI_THREAD_MULTIPLE need it.
class Reach {
  public:
    virtual ~Reach() = default;

    /// A simple operation (contiguous, of one predefined type): nearly every call that the fast paths leave. Not served
    /// if perform() must decide: the way gains nothing, the target is not open, or the operation is not allowed. In
    /// windows whose strategies allow fast paths. `prepared`: an earlier operation of the epoch has opened the target.
    virtual Outcome simple(Target&, const op::Simple&, bool /*prepared*/) { return kNotServed; }
    /// Performs a call on a target that the epoch has opened. On return results are stored and the origin's buffers are
    /// free, unless the extras allow otherwise.
    virtual Outcome perform(Target& target, const op::Call& call, const Update& what, const Extras& extras) = 0;
    /// For a call that is queued: refuses what perform() would refuse whatever happens until then. Not served if no
    /// byte is touched.
    virtual Outcome admit(Target& target, const op::Call& call, const Update& what) = 0;
    /// Waits for operations that this object has left in flight to `rank`, or kEveryTarget; the first fault that was
    /// met. Only called while something of the window is in flight.
    virtual Fault complete(std::uint32_t /*rank*/, Completion /*until*/) { return Fault::None; }
    /// Performs batched operations; a fault stays for complete(). A synchronisation call has come.
    virtual void end_run() {}
    /// The same; and opens `target`, whose operations were batched, for the fast paths again: the run breaks off.
    virtual void leave_run(Target& /*target*/) {}
};

/// A way to targets of this node: perform() is over when it returns, except messages to an agent.
class LocalReach : public Reach {
  public:
    Outcome perform(Target& target, const op::Call& call, const Update& what, const Extras& extras) final;
    Outcome admit(Target& target, const op::Call& call, const Update& what) final;

  protected:
    explicit LocalReach(const Origin& origin) : origin_(origin) {}

    /// The rest of perform(), with the call's first byte from displacement 0.
    virtual Outcome execute(Target& target, const op::Call& call, const Update& what, std::int64_t start) = 0;
    /// The path of an operation on memory of the target that is not mapped here.
    virtual stats::DataPath path(const Target& /*target*/) const { return stats::DataPath::LoadStore; }
    /// A simple operation on memory that is mapped at `here`, `offset` bytes from displacement 0, if the target is
    /// open.
    [[gnu::always_inline]] Outcome load_or_store(Target& target, const op::Simple& what, std::byte* here,
                                                 std::uint64_t offset) const {
        if (target.fast_limit.load(std::memory_order_acquire) == 0) return kNotServed;
        if (what.kind == op::OpKind::Put)
            shm::move_bytes(here, what.origin, what.bytes);
        else if (what.kind == op::OpKind::Get)
            shm::move_bytes(what.result, here, what.bytes);
        else
            return {.served = update(target, what, here, offset)};
        return {};
    }

    const Origin& origin_;

  private:
    bool update(Target& target, const op::Simple& what, std::byte* here, std::uint64_t offset) const;
};

/// The fault of an operation on memory of `rank` that cannot be mapped: Fault::Dead if `rank` has died, else `fault`.
/// While a process ends, the system takes its memory and descriptors first. So it waits 100 ms for the death.
Fault not_mapped(sync::Liveness& liveness, std::uint32_t rank, Fault fault);

/// Computes the first byte of a call on `size` bytes with displacement unit `unit`, and whether it touches none;
/// Fault::Range if it touches a byte outside.
Fault find_start(std::uint32_t rank, std::uint64_t size, std::uint64_t unit, const op::Call& call, std::int64_t& start,
                 bool& nothing);
/// The same where displacements are addresses: the regions of the bytes are looked up later.
Fault find_address(const op::Call& call, std::int64_t& start, bool& nothing);

/// The bytes of a target that the fast paths may load and store, as displacements in bytes: [first, end). None if
/// `end` is 0.
struct FastPart {
    std::uint64_t first = 0;
    std::uint64_t end = 0;
    bool opens = false;  // the limit of the fast paths says whether an epoch has opened the target
};
FastPart fast_part(Way way, const shm::ControlBlock& block);

}  // namespace osc::reach
