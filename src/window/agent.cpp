// Windows and agents: when creation starts one, and how an operation reaches it.
#include "agent/agent.h"

#include "window/window.h"

namespace osc {

void Window::state_agent_need() {
    if (size == 1 || (flavor != MPI_WIN_FLAVOR_CREATE && flavor != MPI_WIN_FLAVOR_DYNAMIC)) return;
    std::uint32_t need = 0;
    const shm::Memory memory = mine().memory;
    if (memory == shm::Memory::Private || memory == shm::Memory::Dynamic) need |= shm::kUnshared;
    if (!team.cma_reaches_all()) need |= shm::kUnreachable;
    if (need != 0) slot.header().agents.fetch_or(need, std::memory_order_acq_rel);
}

Fault Window::serve_by_agent() {
    shm::ControlBlock& block = mine();
    if (block.memory != shm::Memory::Private && block.memory != shm::Memory::Dynamic) return Fault::None;
    agent::Agent& agent = agent::Agent::mine();
    if (const Fault fault = agent.start(&Team::arena_at); fault != Fault::None) return fault;
    served_ = agent.windows().add({static_cast<std::byte*>(base), block.size, regions.get(), &block, me, this});
    block.served = served_;
    block.mailbox = agent.mailbox();
    return Fault::None;
}

void Window::end_service() {
    if (net_id_ != 0) {
        net::Network& network = net::Network::mine();
        network.end_service(net_id_);
        network.endpoint().revoke(exposed_);
        lock_words_.reset();
        leases_.reset();
        net_id_ = 0;
    }
    if (served_ != 0) agent::Agent::mine().windows().remove(served_);
    served_ = 0;
}

Fault Window::connect_agent(const Peer& target, agent::Connection*& connection) {
    const std::uint64_t mailbox = target.control().mailbox;
    // What cannot be mapped may be so because its process is gone.
    const auto why = [&](Fault fault) {
        if (fault == Fault::None || alive(target.rank)) return fault;
        return diag::fail(Fault::Dead, "rank %u died, and its memory with it", target.rank);
    };
    if (mailbox == 0)
        return why(
            diag::fail(Fault::Other,
                       "the memory of rank %u is not mapped here, process_vm_readv does not reach it, and no agent "
                       "was started for the window",
                       target.rank));
    return why(agent::Outbox::mine().connect(team.arena(target.rank), mailbox, connection));
}

Fault Window::await_operations(std::uint32_t target) {
    static_assert(kEveryTarget == agent::kEveryRank && kEveryTarget == net::Far::kAll);
    const Fault near = agent::Outbox::mine().settle(pending_, target);
    if (net_ == nullptr) return near;
    // All is ended, whatever one of the two has met.
    const std::string text = near != Fault::None ? diag::fault_text() : "";
    const Fault far = net_->settle(target);
    return near != Fault::None ? diag::fail(near, "%s", text.c_str()) : far;
}

}  // namespace osc
