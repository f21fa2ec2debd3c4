// Windows that span nodes: serving this process's part, and operations on the others'.
#include <atomic>

#include "config/options.h"
#include "epoch/epoch.h"
#include "transport/net/attached.h"
#include "window/window.h"

namespace osc {
namespace {

net::Protocol protocol() {
    const std::string& name = config::values().net_protocol;
    // A target does not see what goes directly.
    if (config::values().check) return net::Protocol::Buffered;
    return name == "messages"   ? net::Protocol::Messages
           : name == "buffered" ? net::Protocol::Buffered
           : name == "direct"   ? net::Protocol::Direct
                                : net::Protocol::Auto;
}

// The stream of a target that was used before, kept where a mapped target's memory would be.
std::atomic_ref<std::byte*> stream_of(Peer& target) {
    return std::atomic_ref<std::byte*>(target.base);
}

}  // namespace

void Window::serve_network(bool wants_two_level) {
    net::Network& network = net::Network::mine();
    const bool memory = flavor != MPI_WIN_FLAVOR_DYNAMIC && bytes > 0;
    if (memory) network.endpoint().expose(base, static_cast<std::size_t>(bytes), exposed_);
    net::Serving serving;
    serving.id = team.window_id(team.creations());
    serving.base = static_cast<std::byte*>(base);
    serving.size = static_cast<std::uint64_t>(bytes);
    serving.unit = static_cast<std::uint64_t>(unit);
    serving.regions = regions.get();
    serving.slot = &slot;
    serving.rank = me;
    serving.processes = size;
    serving.liveness = this;
    serving.tokens = team.job()->tokens.data();
    serving.exposed = exposed_;
    net_id_ = serving.id;
    net_ = std::make_unique<net::Far>(network, *team.job(), net_id_, me, protocol(), unsettled);
    far_sync = net_.get();
    costs = team.costs();
    if (wants_two_level && unfit_for_two_level() == nullptr) {
        lock_words_ = std::make_unique<net::LockWords>(network, *team.job(), *net_, me);
        serving.words = lock_words_->exposed();
    }
    if (regions != nullptr) {
        leases_ = std::make_unique<net::Leases>(*regions, &network.endpoint());
        serving.leases = leases_.get();
        serving.caches = net_.get();
    }
    net_->served(network.serve(serving));
}

Fault Window::detach(const void* region) {
    if (leases_ == nullptr) return regions->detach(region);
    net::Leases::Given gone;
    const Fault fault = leases_->detach(region, gone);
    net_->withdraw(gone.lease, gone.holders);
    leases_->revoke(gone);
    return fault;
}

Fault Window::await_local(std::uint32_t target) {
    return net_ != nullptr ? net_->settle_local(target) : Fault::None;
}

// `stream_lock` is held then.
Fault Window::reach_net(Peer& target, const op::Call& call, std::unique_lock<std::mutex>& stream_lock,
                        net::Stream*& stream, std::int64_t& start, bool& nothing) {
    stream = reinterpret_cast<net::Stream*>(stream_of(target).load(std::memory_order_acquire));
    if (stream == nullptr) {
        stream = net_->stream(target.rank);
        if (stream == nullptr) return Fault::Other;
        stream_of(target).store(reinterpret_cast<std::byte*>(stream), std::memory_order_release);
    }
    stream_lock = std::unique_lock(stream->mutex());
    net::Description there{};
    if (const Fault fault = stream->describe(there); fault != Fault::None) return fault;
    const bool dynamic = flavor == MPI_WIN_FLAVOR_DYNAMIC;
    op::Bounds touched;
    if (const Fault fault = op::reach(call, dynamic ? 1 : there.unit, start, touched); fault != Fault::None)
        return fault;
    nothing = touched.lo == touched.hi;
    if (nothing) return Fault::None;
    if (!dynamic && (touched.lo < 0 || static_cast<std::uint64_t>(touched.hi) > there.size))
        return diag::fail(Fault::Range, "bytes [%lld, %lld) of rank %u, whose window has %llu bytes",
                          static_cast<long long>(touched.lo), static_cast<long long>(touched.hi), target.rank,
                          static_cast<unsigned long long>(there.size));
    return Fault::None;
}

Fault Window::execute_net(Peer& target, const op::Call& call, const Update& what, net::Asked* asked) {
    net::Stream* stream = nullptr;
    std::int64_t start = 0;
    bool nothing = false;
    std::unique_lock<std::mutex> lock;
    if (const Fault fault = reach_net(target, call, lock, stream, start, nothing); fault != Fault::None || nothing)
        return fault;
    const bool dynamic = flavor == MPI_WIN_FLAVOR_DYNAMIC;
    // What is returned to a copy of the result has to be there before the copy goes.
    if (call.kind == op::Kind::GetAccumulate && !call.result.layout->elements().one_piece(call.result.count))
        stream->answers_now();
    if (asked != nullptr) *asked = {stream->issue(), stream, target.rank};
    net::Attached attached(*stream);
    Transport& transport = dynamic ? static_cast<Transport&>(attached) : *stream;
    const Fault fault = op::execute(call, what, start, transport);
    if (asked != nullptr) stream->issued();
    if (unsettled.load(std::memory_order_acquire) != 0) epoch::left_under_way(*this, target);
    return fault;
}

}  // namespace osc
