// Synchronisation with processes on other nodes: the interface that epochs and strategies call. net::RemoteWindow
// implements it. A request travels with the window's operations, in program order; Core::complete_ops() awaits its
// reply.
#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "base/fault.h"
#include "sync/costs.h"

namespace osc::sync {

enum class LockKind : std::uint32_t { Shared = 1, Exclusive = 2 };

/// Which ranks of the window's group live. Called only after a long wait, and without any lock held.
class Liveness {
  public:
    virtual bool alive(std::uint32_t rank) = 0;
    /// A member that has died, or -1; for a wait that no process of the node leaves before it ends for all of them, or
    /// a member has died. The processes of a node divide the members of other nodes among them and share what they
    /// find, so a process need not connect to all.
    virtual int dead_in_collective() = 0;

  protected:
    ~Liveness() = default;
};

/// The data that the nodes exchange at a fence.
struct FenceSummary {
    std::map<std::uint32_t, std::uint32_t> closes;  // by target: how many remote processes have sent it a close message
    std::uint32_t wants = 0;                        // votes for the next epoch: bits of Want, or-ed over the processes

    void add(const FenceSummary& more) {
        wants |= more.wants;
        for (const auto& part : more.closes)
            base::insist([&] { closes[part.first] += part.second; });
    }
};

class RemoteSync {
  public:
    /// Requests the lock of a target; later operations on the target execute under it. `inside_lock_all`: a shared
    /// lock, see LockContext::inside_lock_all.
    virtual Fault lock(std::uint32_t target, LockKind kind, bool inside_lock_all) = 0;
    /// Waits until the requested lock of a target is granted or broken. A broken lock is an error of the next call that
    /// completes operations there. Thread-safe; blocks the calling thread only.
    virtual void await_lock(std::uint32_t target) = 0;
    /// Releases the lock after all earlier requests.
    virtual void unlock(std::uint32_t target) = 0;
    /// Sends MPI_Win_post's message to `origin`.
    virtual Fault post(std::uint32_t origin) = 0;
    /// Sends MPI_Win_complete's message to `target`, behind the operations of the epoch.
    virtual Fault send_complete(std::uint32_t target) = 0;
    /// After send_complete(): whether MPI_Win_complete awaits the target's reply, because the target calls
    /// MPI_Win_test.
    virtual bool awaits_complete(std::uint32_t target) = 0;
    /// This process calls MPI_Win_test, once per window and origin: returns when the completes that these origins have
    /// sent are here, and the origins await the reply to each later one.
    virtual void announce_test(std::span<const std::uint32_t> origins) = 0;
    /// Queues the close message of a fence's epoch to `target`, behind its operations, and sends it. With `piggyback`
    /// it stays queued for the barrier that this process calls next.
    virtual Fault close(std::uint32_t target, bool piggyback) = 0;
    /// This process has made a fence: it executes messages that other processes sent after the same fence. `ahead`:
    /// other processes may not have made it yet; they delay this process's later messages until they have.
    virtual void opened(std::uint64_t fence, bool ahead) = 0;
    /// Waits until this process has received `closes` close messages since the window's creation; false if a process of
    /// the window died.
    virtual bool await_closes(std::uint64_t closes, Liveness& liveness) = 0;
    /// After a failure: drops outstanding results, so that their buffers are the user's again.
    virtual void forget_results() = 0;
    /// This process's traffic to other nodes since the last call.
    virtual Traffic take_traffic() = 0;
    /// Called by the first process of each node: a barrier of these processes. It fails if any process of the window
    /// has died, because that process's node cannot arrive, even if its first process lives. `summary`: in, the counts
    /// of this node's processes; out, the counts of all other nodes about this node's processes.
    virtual Fault barrier(Liveness& liveness, FenceSummary& summary) = 0;

  protected:
    ~RemoteSync() = default;
};

}  // namespace osc::sync
