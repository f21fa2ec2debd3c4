// Windows and agents: whether creation starts one; the end of the service of this process's memory.
#include "net/channels/agent.h"

#include <utility>

#include "reach/private.h"
#include "window/window.h"

namespace osc {
namespace {

bool needs_agent(shm::Memory memory) {
    return memory == shm::Memory::Private || memory == shm::Memory::Mixed || memory == shm::Memory::Dynamic;
}

}  // namespace

void Window::state_agent_need() {
    if (core.size == 1 || (flavor != MPI_WIN_FLAVOR_CREATE && flavor != MPI_WIN_FLAVOR_DYNAMIC)) return;
    std::uint32_t need = 0;
    const shm::Memory memory = core.mine().memory;
    if (needs_agent(memory)) need |= shm::kUnshared;
    if (!team.cma_reaches_all()) need |= shm::kUnreachable;
    if (need != 0) core.controls.header().agents.fetch_or(need, std::memory_order_acq_rel);
}

net::ExposedWindow Window::exposed() {
    net::ExposedWindow exposed;
    exposed.base = static_cast<std::byte*>(base);
    exposed.size = static_cast<std::uint64_t>(bytes);
    exposed.unit = static_cast<std::uint64_t>(unit);
    exposed.regions = regions.get();
    exposed.controls = &core.controls;
    exposed.rank = core.me;
    exposed.processes = core.size;
    exposed.liveness = this;
    exposed.stats = core.stats;
    exposed.neighbours = this;
    return exposed;
}

Fault Window::serve_by_agent() {
    shm::ControlBlock& block = core.mine();
    if (!needs_agent(block.memory)) return Fault::None;
    net::Agent& agent = net::Agent::mine();
    if (const Fault fault = agent.start(&Team::arena_at); fault != Fault::None) return fault;
    served_ = agent.service().add(exposed());
    block.served = served_;
    block.mailbox = agent.mailbox();
    return Fault::None;
}

void Window::end_service() {
    if (std::exchange(is_on_network_, false)) {
        net::NetworkStack& network = net::NetworkStack::mine();
        network.messenger.end_service(core.id);
        network.endpoint().revoke(exposed_);
        lock_words_.reset();
        leases_.reset();
    }
    if (served_ != 0) net::Agent::mine().service().remove(std::exchange(served_, 0));
}

}  // namespace osc
