// How operations reach the memory of targets: one class and one file for each way, and in a window one object. The way
// of a target is chosen once, when this process first uses it (Core::target), and every operation outside the fast
// paths is one call of that object.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/fault.h"
#include "net/origin/completion.h"
#include "op/simple.h"
#include "reach/target.h"
#include "shm/activity.h"
#include "shm/arena.h"

namespace osc::reach {

/// What became of an operation.
struct Outcome {
    Fault fault = Fault::None;
    bool in_flight = false;  // it may be incomplete at the target: the window must complete it (Core::complete_ops)
};

/// What an operation asks for beside its call.
struct Extras {
    net::PendingOp* pending = nullptr;  // not null: the operation may still use its buffers when perform() returns,
                                        // until the completion that this then refers to
    std::uint32_t notification = net::kNoNotification;  // of a target on another node: the counter that it increments
};

/// What complete() waits for: operations to be complete at their targets, or only to use no buffer of the origin.
enum class Completion : std::uint8_t { AtTarget, AtOrigin };
using shm::kEveryTarget;

/// Where bytes of a target are that its limit (Target::full_limit) does not cover.
struct Place {
    std::byte* here = nullptr;  // as mapped in this process; null: process_vm_* reaches them
    pid_t pid = 0;              // then the process,
    std::uint64_t address = 0;  // and the address there
    std::uint64_t offset = 0;   // from which the stripe of an element follows
};

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
};

/// One way. Thread-safe as operations of MPI_THREAD_MULTIPLE need it.
class Reach {
  public:
    virtual ~Reach() = default;

    /// Performs a call on a target that the epoch has opened. On return results are stored and the origin's buffers are
    /// free, unless the extras allow otherwise.
    virtual Outcome perform(Target& target, const op::Call& call, const Update& what, const Extras& extras) = 0;
    /// For a call that is queued: refuses what perform() would refuse whatever happens until then, and notes the path
    /// that its private parts will take. `nothing`: it touches no byte.
    virtual Fault admit(Target& target, const op::Call& call, bool& nothing) = 0;
    /// Waits for operations that perform() and send() have left in flight to `rank`, or kEveryTarget; the first fault
    /// that was met. Only called while something of the window is in flight.
    virtual Fault complete(std::uint32_t /*rank*/, Completion /*until*/) { return Fault::None; }
    /// Sends a small operation to a target of another node, whose epoch is open. False, with nothing done, if perform()
    /// must.
    virtual bool send(Target& /*target*/, const op::Simple& /*operation*/, bool /*threaded*/) { return false; }
    /// Finds bytes of the window that the target's limit does not cover: mapped here, in the region that the last
    /// operation on the target has found, or with no byte mapped here and in the reach of process_vm_*. False if only
    /// perform() can.
    virtual bool find(const Target& /*target*/, std::int64_t /*disp*/, std::uint64_t /*bytes*/,
                      Place& /*place*/) const {
        return false;
    }
};

/// A way to targets of this node: perform() is over when it returns, except messages to an agent.
class LocalReach : public Reach {
  public:
    Outcome perform(Target& target, const op::Call& call, const Update& what, const Extras& extras) final;
    Fault admit(Target& target, const op::Call& call, bool& nothing) final;

  protected:
    /// The rest of perform(), with the call's first byte from displacement 0.
    virtual Outcome execute(Target& target, const op::Call& call, const Update& what, std::int64_t start) = 0;
    /// Notes the path of an operation whose target has memory that is not mapped here.
    virtual void note_path(const Target& /*target*/) const {}
    /// Computes the call's first byte; Fault::Range if it touches a byte outside the target's memory.
    virtual Fault find_start(Target& target, const op::Call& call, std::int64_t& start, bool& nothing);
};

/// Computes the first byte of a call on `size` bytes with displacement unit `unit`; Fault::Range as above.
Fault find_start_in(std::uint32_t rank, std::uint64_t size, std::uint64_t unit, const op::Call& call,
                    std::int64_t& start, bool& nothing);
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
