// A window as this process sees it: what the MPI calls need beside the Core that the epochs work on.
#pragma once

#include <mpi.h>

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "op/call.h"
#include "op/queue.h"
#include "strategy/core.h"
#include "transport/agent/outbox.h"
#include "transport/net/lock_words.h"
#include "transport/net/ticket.h"
#include "transport/shm/regions.h"
#include "window/team.h"

namespace osc {

/// Info values in use, as MPI_Win_get_info reports them.
using InfoInUse = std::vector<std::pair<std::string, std::string>>;

class Window final : public Core {
  public:
    /// A window of `owner`'s processes; takes over one reference to it.
    explicit Window(Team& owner) : Core(owner.me(), owner.size()), team(owner) {}
    ~Window() override;

    bool alive(std::uint32_t rank) override { return team.alive(rank); }

    /// Executes a checked call on a target whose epoch is open. The origin's buffers are free on return, and what is
    /// returned is there; the data is at the target then or, where an agent serves it, after Core::settle().
    /// With `asked`, an operation on another node may still use the origin's buffers: `asked` tells of its end.
    Fault execute(Peer& target, const op::Call& call, net::Asked* asked = nullptr);

    /// Puts a checked call off; what must be wrong with it whenever it is done is told now.
    Fault put_off(Peer& target, op::PutOff&& operation);
    // Of Core. Regions of dynamic windows are looked up by the call: nothing is put off there.
    bool puts_off() const override { return flavor != MPI_WIN_FLAVOR_DYNAMIC; }
    bool has_put_off(std::uint32_t target) const override { return queue_.has(target); }
    Fault do_put_off(std::uint32_t target) override;
    void discard_put_off(std::uint32_t target) override {
        if (queue_.has(target)) queue_.discard(target);
    }
    std::vector<std::uint32_t> put_off_targets() const override { return queue_.targets(); }

    /// Makes the window's strategies: of fences the one of this number, on which all processes have agreed.
    void choose_strategies(MPI_Info hints, int fences);

    /// Tells in the slot's header what speaks for agents here; before the creation's first barrier.
    void state_agent_need();
    /// After it, if agents are needed: starts this process's agent, if the window exposes memory that only it can
    /// serve. Others may ask it once they have met again.
    Fault serve_by_agent();
    /// Serves this process's part to other nodes, and makes the way to theirs; before creation's last agreement.
    /// `wants_two_level`: some process does, for locks.
    void serve_network(bool wants_two_level);
    /// Whether this process cannot take part in it.
    bool lacks_lock_words() const;
    /// Settles the scheme of locks, the same on all processes: `lacking` is what they have told of that.
    void choose_lock_scheme(bool wants_two_level, bool lacking);
    /// Takes a region of a dynamic window away: nobody reads or writes it any more.
    Fault detach(const void* region);
    /// The agent refuses messages for this window from now on, and none is at work in it.
    void end_service();

    Team& team;
    MPI_Win handle = MPI_WIN_NULL;  // the host window that lends us its handle
    int flavor = 0;

    // What the predefined attributes point at.
    void* base = nullptr;
    MPI_Aint bytes = 0;
    int unit = 1;
    int model = MPI_WIN_UNIFIED;

    std::uint64_t slot_offset = 0;     // in rank 0's arena
    void* owned = nullptr;             // piece of this process's arena that the window gives back
    std::byte* segment = nullptr;      // contiguous shared windows: all memory, mapped here
    std::uint64_t segment_offset = 0;  // in rank 0's arena
    std::size_t segment_bytes = 0;
    bool departed = false;  // a free failed after the others had been told that they may go
    InfoInUse info;
    std::unique_ptr<shm::RegionTable> regions;  // dynamic windows: attached here

  protected:
    void describe(Peer& peer, const shm::ControlBlock& block) override;
    Fault await_operations(std::uint32_t target) override;
    Fault await_local(std::uint32_t target) override;

  private:
    const char* unfit_for_two_level() const;
    Fault connect_agent(const Peer& target, agent::Connection*& connection);
    Path far_path(std::uint32_t rank) const;
    Fault execute_net(Peer& target, const op::Call& call, const Update& what, net::Asked* asked);
    Fault reach(Peer& target, const op::Call& call, std::int64_t& start, bool& nothing);
    Fault reach_net(Peer& target, const op::Call& call, std::unique_lock<std::mutex>& stream_lock, net::Stream*& stream,
                    std::int64_t& start, bool& nothing);
    Fault execute_dynamic(Peer& target, const op::Call& call, const Update& what, std::int64_t start);
    std::optional<std::vector<shm::Region>> read_regions(std::uint32_t rank, std::uint64_t offset,
                                                         std::uint64_t count) const;

    shm::RegionView& view(std::uint32_t rank);

    struct Mapping {
        std::uint32_t arena_rank;
        std::uint64_t offset;
        std::byte* address;
        std::size_t bytes;
    };
    template <class Execute>
    Fault by_agent(Peer& target, std::uint64_t base, Execute&& execute);

    std::unique_ptr<net::Far> net_;  // windows that span nodes
    std::uint64_t net_id_ = 0;       // their number
    std::unique_ptr<net::LockWords> lock_words_;
    std::unique_ptr<sync::TwoLevel> locks_;  // over them
    ofi::Exposed exposed_;
    std::unique_ptr<net::Leases> leases_;  // dynamic ones: what others know of the regions
    op::Queue queue_;
    agent::Pending pending_{unsettled, Fault::None, {}};
    std::uint64_t served_ = 0;     // the agent's number of this window; 0: not served
    std::vector<Mapping> mapped_;  // kept apart from the slot, which may be gone before this object
    std::mutex views_mutex_;
    std::map<std::uint32_t, std::unique_ptr<shm::RegionView>> views_;  // dynamic windows: attached at targets used
};

void register_window(MPI_Win handle, Window* window);
void unregister_window(MPI_Win handle);
/// Calls visit(window) for every registered window, in no order. Thread-safe: no window is registered or unregistered
/// until the last call has returned, and a window is destroyed only after unregister_window(), so each one outlives its
/// visit. `visit` must not keep the reference, call the host MPI, or register or unregister a window.
void visit_windows(const std::function<void(Window&)>& visit);
/// Every live window, for MPI_Finalize: no other thread may free a window then.
std::vector<Window*> live_windows();

}  // namespace osc
