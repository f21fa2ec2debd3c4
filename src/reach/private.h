// The way to memory that only its owner has mapped: process_vm_* where the system allows it, else messages to the
// owner's agent.
#pragma once

#include <atomic>
#include <optional>

#include "local/cma_transport.h"
#include "local/locked.h"
#include "net/channels/outbox.h"
#include "net/origin/agent_transport.h"
#include "reach/reach.h"
#include "shm/activity.h"
#include "sync/remote_sync.h"

namespace osc::reach {

class Private final : public LocalReach {
  public:
    /// Of process `me` of window number `window`. `incomplete` counts messages to agents that are not answered yet.
    Private(std::uint32_t me, const std::uint64_t& window, sync::Liveness& liveness, const Node& node,
            std::atomic<std::uint32_t>& incomplete)
        : me_(me), window_(window), liveness_(liveness), node_(node), pending_{incomplete, Fault::None, {}} {}

    bool find(const Target& target, std::int64_t disp, std::uint64_t bytes, Place& place) const override;

    void note_path(const Target& target) const override;

    /// Messages to agents hold copies of the origin's data, so they use no buffer of it.
    Fault complete(std::uint32_t rank, Completion until) override {
        return until == Completion::AtTarget ? await_agents(rank) : Fault::None;
    }
    /// Waits for the answers of a target's agent, or of all agents; the first fault that was met.
    Fault await_agents(std::uint32_t rank) { return net::Outbox::mine().complete_ops(pending_, rank); }

    /// One operation's transport to a target's memory, of which displacement 0 is at address `base` there.
    class Carrier {
      public:
        Carrier(Private& way, Target& target, std::uint64_t base);
        /// Not None: there is no transport.
        Fault fault() const { return fault_; }
        Transport& transport() { return cross_ ? static_cast<Transport&>(*cross_) : *agent_; }
        bool is_agent() const { return agent_.has_value(); }
        /// Of the operation that the transport has executed with this fault.
        Outcome outcome(Fault fault) const { return {fault, is_agent()}; }

      private:
        std::optional<cma::Cross> cross_;
        std::optional<shm::WaitScope> waits_;  // for the agent
        std::optional<net::AgentTransport> agent_;
        Fault fault_ = Fault::None;
    };

    /// The process of a target, if process_vm_* reaches it; else 0.
    pid_t pid_of(std::uint32_t rank) const {
        return rank == me_ ? node_.arena_of(me_).address().pid : node_.pid_of(rank);
    }
    const Node& node() const { return node_; }
    shm::Stripes stripes(const Target& target) const { return {target.control(), me_, liveness_}; }

  protected:
    Outcome execute(Target& target, const op::Call& call, const Update& what, std::int64_t start) override;

  private:
    Fault connect(const Target& target, net::AgentRoute*& route);

    const std::uint32_t me_;
    const std::uint64_t& window_;
    sync::Liveness& liveness_;
    const Node& node_;
    net::IncompleteOps pending_;
};

}  // namespace osc::reach
