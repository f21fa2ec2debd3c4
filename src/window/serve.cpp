// The service of this process's memory: to processes of its node by an agent, which creation starts where it is needed,
// and to those of other nodes; and its end.
#include <memory>
#include <utility>

#include "base/options.h"
#include "host/host.h"
#include "net/channels/agent.h"
#include "net/network_stack.h"
#include "net/target/leases.h"
#include "reach/net.h"
#include "window/checker.h"
#include "window/window.h"

namespace osc {
namespace {

bool needs_agent(shm::Memory memory) {
    return memory == shm::Memory::Private || memory == shm::Memory::Mixed || memory == shm::Memory::Dynamic;
}

net::Protocol protocol() {
    const std::string& name = base::values().net_protocol;
    // The target executes no direct access, so it could not check the asserts.
    if (g_checker != nullptr) return net::Protocol::Buffered;
    return name == "messages"   ? net::Protocol::Messages
           : name == "buffered" ? net::Protocol::Buffered
           : name == "direct"   ? net::Protocol::Direct
                                : net::Protocol::Auto;
}

}  // namespace

void Window::offer_agent() {
    if (team.local_size() == 1 || (flavor != MPI_WIN_FLAVOR_CREATE && flavor != MPI_WIN_FLAVOR_DYNAMIC)) return;
    std::uint32_t need = 0;
    if (!team.cma_reaches_all()) need |= shm::kUnreachable;
    // Unguarded, an agent only serves where nothing else reaches the memory.
    if (needs_agent(core.mine().memory) &&
        (!net::Guard::works() || base::attempt([this] { return serve_by_agent(); }) != Fault::None))
        need |= shm::kUnserved;
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
    if (!needs_agent(block.memory) || served_ != 0) return Fault::None;
    net::Agent& agent = net::Agent::mine();
    // Where the checker protects pages, only the agent and the system's calls pass by it.
    const bool attends = base::values().attend && g_checker == nullptr;
    if (const Fault fault = agent.start(&Team::arena_at, attends); fault != Fault::None) return fault;
    shm::set_wait_service({[] { return net::Agent::mine().poll(); }, [] { net::Agent::mine().leave(); }});
    host::hook_polls(nullptr);
    net::ExposedWindow window = exposed();
    // As by process_vm_*, which the program may see fail. Where only agents reach memory, a program's handler may open
    // a protected page to them.
    if (net::Guard::works() && team.cma_reaches_all()) window.guard = std::make_shared<net::Guard>();
    served_ = agent.service().add(window);
    block.served = served_;
    block.mailbox = agent.mailbox();
    return Fault::None;
}

void Window::serve_network(bool wants_two_level) {
    is_on_network_ = true;
    net::NetworkStack& network = net::NetworkStack::mine();
    const bool memory = flavor != MPI_WIN_FLAVOR_DYNAMIC && bytes > 0;
    if (memory) network.endpoint().expose(base, static_cast<std::size_t>(bytes), exposed_);
    net::ExposedWindow serving = exposed();
    serving.id = core.id;
    serving.tokens = team.job()->tokens;
    serving.exposed = exposed_;
    serving.board = &notifications.own_board();
    net_ = std::make_unique<net::RemoteWindow>(network, *team.job(), core.id, core.me, protocol(), core.incomplete);
    core.remote_sync = net_.get();
    net_way_ = std::make_unique<reach::Net>(*net_, flavor == MPI_WIN_FLAVOR_DYNAMIC, core.threaded);
    core.reaches[static_cast<std::size_t>(Way::Net)] = net_way_.get();
    core.costs = team.costs();
    if (wants_two_level && unfit_for_two_level() == nullptr) {
        lock_words_ = std::make_unique<net::LockWords>(network, *net_, core.me);
        serving.words = lock_words_->exposed();
    }
    if (regions != nullptr) {
        leases_ = std::make_unique<net::Leases>(*regions, &network.endpoint());
        serving.leases = leases_.get();
        serving.caches = net_.get();
    }
    net_->served(network.messenger.serve(serving));
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

Fault Window::detach(const void* region) {
    if (leases_ == nullptr) return regions->detach(region);
    net::Leases::Given gone;
    const Fault fault = leases_->detach(region, gone);
    net_->withdraw(gone.lease, gone.holders);
    leases_->revoke(gone);
    return fault;
}

Fault Window::ask_counters(std::uint32_t rank, std::uint32_t& count) {
    return net_way_->count_counters(core.target(rank), count);
}

}  // namespace osc
