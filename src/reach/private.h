// The way to memory that only its owner has mapped: a thread of the owner that waits, process_vm_* where the system
// allows it, else messages to the owner's agent. A long run of puts and updates waits in messages for a thread that
// waits, else in a batch for process_vm_*.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

#include "local/cma_transport.h"
#include "local/locked.h"
#include "net/channels/outbox.h"
#include "net/origin/agent_transport.h"
#include "reach/reach.h"
#include "shm/activity.h"
#include "sync/remote_sync.h"

namespace osc::reach {

class Private final : public LocalReach, private cma::Detours {
  public:
    /// Of window number `window`.
    Private(const Origin& origin, const std::uint64_t& window, const Node& node)
        : LocalReach(origin), window_(window), node_(node), pending_{origin.incomplete}, run_(origin) {}

    Outcome simple(Target& target, const op::Simple& what, bool prepared) override {
        return simple_outside(target, what, prepared, 0, 0);
    }
    /// The same, except of operations that touch bytes [first, end) from displacement 0.
    Outcome simple_outside(Target& target, const op::Simple& what, bool prepared, std::uint64_t first,
                           std::uint64_t end);
    /// A simple operation at `address` of the target's process, `offset` bytes from displacement 0: one of a long run
    /// joins its batch.
    Outcome simple_at(Target& target, const op::Simple& what, bool prepared, std::uint64_t address,
                      std::uint64_t offset);
    void end_run() override {
        run_.end();
        send_run();
    }
    void leave_run(Target& target) override {
        run_.leave();
        send_run();
        target.unmapped_run = false;
    }
    stats::DataPath path(const Target& target) const override {
        return pid_of(target.rank) != 0 ? stats::DataPath::ProcessVm : stats::DataPath::Agent;
    }

    /// Messages to agents hold copies of the origin's data, so they use no buffer of it.
    Fault complete(std::uint32_t rank, Completion until) override {
        base::FirstFault first;
        first.note(take_death());
        send_run();
        first.note(run_.take_fault());
        if (until == Completion::AtTarget && asks_agents_.load(std::memory_order_relaxed))
            first.note(await_agents(rank));
        return first.take();
    }
    /// A target has died while an operation loaded or stored in its memory: complete() reports it.
    void note_death(std::uint32_t rank) {
        if (dead_.exchange(rank + 1, std::memory_order_relaxed) == 0)
            origin_.incomplete.fetch_add(1, std::memory_order_release);
    }
    /// Waits for the answers of a target's agent, or of all agents; the first fault that was met.
    Fault await_agents(std::uint32_t rank) { return net::Outbox::mine().complete_ops(pending_, rank); }

    /// Whether a message moves the target's operand in less time than the system: many short pieces, or few while a
    /// thread of the target waits.
    bool prefers_message(const Target& target, const op::Call& call);

    /// One operation's transport to a target's memory, of which displacement 0 is at address `base` there.
    class Carrier {
      public:
        /// `sent`: an operation that prefers_message().
        Carrier(Private& way, Target& target, std::uint64_t base, const op::Call* sent = nullptr);
        /// Not None: there is no transport.
        Fault fault() const { return fault_; }
        Transport& transport() { return cross_ ? static_cast<Transport&>(*cross_) : *agent_; }
        bool is_agent() const { return agent_.has_value(); }
        /// Of the operation that the transport has executed with this fault.
        Outcome outcome(Fault fault) const {
            const bool detour = cross_ && cross_->has_detour();
            return {.fault = fault, .in_flight = is_agent(), .path = detour ? stats::DataPath::Agent : path_};
        }

      private:
        std::optional<cma::Cross> cross_;
        std::optional<shm::WaitScope> waits_;  // for the agent
        std::optional<net::AgentTransport> agent_;
        stats::DataPath path_;
        Fault fault_ = Fault::None;
    };

    /// The process of a target, if process_vm_* reaches it; else 0.
    pid_t pid_of(std::uint32_t rank) const {
        return rank == origin_.me ? node_.arena_of(rank).address().pid : node_.pid_of(rank);
    }
    const Node& node() const { return node_; }

  protected:
    Outcome execute(Target& target, const op::Call& call, const Update& what, std::int64_t start) override;

  private:
    /// A process of this node, as its agent's sender knows it.
    struct Peer {
        std::atomic<net::AgentRoute*> route{nullptr};
        std::atomic<std::uint32_t> calls{0};          // before the route is made
        std::optional<net::AgentTransport> messages;  // take operations of the run
        std::uint64_t run = 0;                        // the last run on the process
        bool sent_updates = false;                    // in messages that are not known to be answered
    };

    Fault take_death();
    bool join(Target& target, const op::Simple& what, pid_t pid, std::uint64_t address, std::uint64_t offset);
    Peer* peer_of_run(const Target& target, const op::Simple& what, std::uint64_t base);
    void send(Peer*& place);
    void send_run() {
        for (Peer*& place : in_messages_)
            if (place != nullptr) send(place);
    }
    Fault await_updates(const Target& target);
    bool ask(const Target& target, const op::Simple& what, std::uint64_t offset);
    net::AgentRoute* route_to(const Target& target);
    [[gnu::cold]] Fault connect(std::uint32_t rank, std::uint64_t mailbox, net::AgentRoute*& route);
    Fault connect(const Target& target, net::AgentRoute*& route) {
        return connect(target.rank, target.control().mailbox, route);
    }
    cma::Place place_of(const Target& target, pid_t pid, std::uint64_t base) {
        return {pid, base, origin_.stripes(target.control()), target.rank, this};
    }
    std::unique_ptr<Transport> open_detour(const cma::Place& place) override;

    const std::uint64_t& window_;
    const Node& node_;
    std::once_flag peers_made_;
    std::unique_ptr<Peer[]> peers_;  // by Target::local_index
    net::IncompleteOps pending_;
    std::atomic<bool> asks_agents_{false};   // an operation has gone to an agent
    std::atomic<bool> sent_updates_{false};  // of some process
    std::atomic<std::uint32_t> dead_{0};     // rank + 1 of a target whose death is unreported, and counted in
                                             // Origin::incomplete
    Run run_;
    std::array<Peer*, net::Outbox::kMostKept> in_messages_{};  // those with messages
};

}  // namespace osc::reach
