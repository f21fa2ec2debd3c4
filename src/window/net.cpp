// Windows that span nodes: the service of this process's memory.
#include "reach/net.h"

#include "base/options.h"
#include "net/network_stack.h"
#include "net/target/leases.h"
#include "window/checker.h"
#include "window/window.h"

namespace osc {
namespace {

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

void Window::serve_network(bool wants_two_level) {
    is_on_network_ = true;
    net::NetworkStack& network = net::NetworkStack::mine();
    const bool memory = flavor != MPI_WIN_FLAVOR_DYNAMIC && bytes > 0;
    if (memory) network.endpoint().expose(base, static_cast<std::size_t>(bytes), exposed_);
    net::ExposedWindow serving = exposed();
    serving.id = core.id;
    serving.tokens = team.job()->tokens.data();
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
