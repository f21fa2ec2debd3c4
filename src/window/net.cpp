// Windows that span nodes: the service of this process's memory, and operations on targets of other nodes.
#include <atomic>
#include <optional>

#include "base/options.h"
#include "epoch/epoch.h"
#include "transport/am/origin/attached.h"
#include "window/window.h"

namespace osc {
namespace {

am::Protocol protocol() {
    const std::string& name = base::values().net_protocol;
    // The target executes no direct access, so it could not check the asserts.
    if (base::values().check != "0") return am::Protocol::Buffered;
    return name == "messages"   ? am::Protocol::Messages
           : name == "buffered" ? am::Protocol::Buffered
           : name == "direct"   ? am::Protocol::Direct
                                : am::Protocol::Auto;
}

// The stream of a remote target, once used. Peer::base holds it, which only mapped targets use otherwise.
std::atomic_ref<std::byte*> stream_of(Peer& target) {
    return std::atomic_ref<std::byte*>(target.base);
}

}  // namespace

void Window::serve_network(bool wants_two_level) {
    am::NetworkStack& network = am::NetworkStack::mine();
    const bool memory = flavor != MPI_WIN_FLAVOR_DYNAMIC && bytes > 0;
    if (memory) network.endpoint().expose(base, static_cast<std::size_t>(bytes), exposed_);
    am::ExposedWindow serving = exposed();
    serving.id = team.window_id(team.creations());
    serving.tokens = team.job()->tokens.data();
    serving.exposed = exposed_;
    serving.board = &notifications.own_board();
    net_id_ = serving.id;
    net_ = std::make_unique<am::RemoteWindow>(network, *team.job(), net_id_, me, protocol(), incomplete);
    remote_sync = net_.get();
    costs = team.costs();
    if (wants_two_level && unfit_for_two_level() == nullptr) {
        lock_words_ = std::make_unique<am::LockWords>(network, *team.job(), *net_, me);
        serving.words = lock_words_->exposed();
    }
    if (regions != nullptr) {
        leases_ = std::make_unique<am::Leases>(*regions, &network.endpoint());
        serving.leases = leases_.get();
        serving.caches = net_.get();
    }
    net_->served(network.messenger.serve(serving));
}

Fault Window::detach(const void* region) {
    if (leases_ == nullptr) return regions->detach(region);
    am::Leases::Given gone;
    const Fault fault = leases_->detach(region, gone);
    net_->withdraw(gone.lease, gone.holders);
    leases_->revoke(gone);
    return fault;
}

Fault Window::await_local(std::uint32_t target) {
    return net_ != nullptr ? net_->complete_local(target) : Fault::None;
}

Fault Window::find_stream(Peer& target, am::Stream*& stream) {
    if (target.path != Path::Net) {  // a target of this node
        stream = net_->stream(target.rank);
        return stream != nullptr ? Fault::None : Fault::Other;
    }
    stream = reinterpret_cast<am::Stream*>(stream_of(target).load(std::memory_order_acquire));
    if (stream != nullptr) return Fault::None;
    stream = net_->stream(target.rank);
    if (stream == nullptr) return Fault::Other;
    stream_of(target).store(reinterpret_cast<std::byte*>(stream), std::memory_order_release);
    return Fault::None;
}

bool Window::try_small(std::uint32_t rank, const am::SmallOperation& operation) {
    if (net_ == nullptr || rank >= size) return false;
    Peer& target = peers[rank];
    if (target.block.load(std::memory_order_acquire) == nullptr || target.path != Path::Net) return false;
    am::Stream* const stream = reinterpret_cast<am::Stream*>(stream_of(target).load(std::memory_order_acquire));
    if (stream == nullptr) return false;
    const bool accumulates = operation.record.opcode != am::Opcode::Put && operation.record.opcode != am::Opcode::Get;
    if (provider_atomics && accumulates) return false;
    {
        const StateGuard guard(*this);
        if (!epoch::is_prepared(*this, target)) return false;
    }
    if (!stream->try_small(operation, threaded)) return false;
    stats::t_path = stats::DataPath::Message;
    // With other threads a flush may be about to make this target flushable.
    if (threaded || flushable.load(std::memory_order_relaxed) != 0) epoch::mark_incomplete(*this, target);
    return true;
}

Fault Window::ask_counters(std::uint32_t rank, std::uint32_t& count) {
    am::Stream* stream = nullptr;
    if (const Fault fault = find_stream(peer(rank), stream); fault != Fault::None) return fault;
    const std::lock_guard lock(stream->mutex());
    return stream->queries().count_counters(count);
}

// Finds the target's stream, locks it (`stream_lock`), and computes the operation's first byte at the target.
Fault Window::reach_net(Peer& target, const op::Call& call, std::unique_lock<std::mutex>& stream_lock,
                        am::Stream*& stream, std::int64_t& start, bool& nothing) {
    if (const Fault fault = find_stream(target, stream); fault != Fault::None) return fault;
    stream_lock = std::unique_lock(stream->mutex());
    am::Description there{};
    if (const Fault fault = stream->queries().describe(there); fault != Fault::None) return fault;
    const bool dynamic = flavor == MPI_WIN_FLAVOR_DYNAMIC;
    op::Bounds touched;
    if (const Fault fault = op::find_extent(call, dynamic ? 1 : there.unit, start, touched); fault != Fault::None)
        return fault;
    nothing = touched.lo == touched.hi;
    if (nothing) return Fault::None;
    if (!dynamic && (touched.lo < 0 || static_cast<std::uint64_t>(touched.hi) > there.size))
        return base::fail(Fault::Range, "bytes [%lld, %lld) of rank %u, whose window has %llu bytes",
                          static_cast<long long>(touched.lo), static_cast<long long>(touched.hi), target.rank,
                          static_cast<unsigned long long>(there.size));
    return Fault::None;
}

Fault Window::execute_net(Peer& target, const op::Call& call, const Update& what, am::PendingOp* pending,
                          std::uint32_t notification) {
    am::Stream* stream = nullptr;
    std::int64_t start = 0;
    bool nothing = false;
    std::unique_lock<std::mutex> lock;
    const bool notifies = notification != am::kNoNotification;
    if (const Fault fault = reach_net(target, call, lock, stream, start, nothing);
        fault != Fault::None || (nothing && !notifies))
        return fault;
    stats::t_path = stats::DataPath::Message;
    const bool dynamic = flavor == MPI_WIN_FLAVOR_DYNAMIC;
    const bool accumulates = call.kind != op::OpKind::Put && call.kind != op::OpKind::Get;
    const bool by_provider = fits_provider(call, what);
    if (provider_atomics && !by_provider && accumulates) stream->accumulate_by_message();
    // The result goes to a contiguous copy, so it must arrive before this call unpacks the copy and frees it.
    if (call.kind == op::OpKind::GetAccumulate && !call.result.layout->elements().one_piece(call.result.count))
        stream->flow().operation.answers_now = true;
    stream->flow().operation.notification = notification;
    if (pending != nullptr) *pending = {stream->flow().issue(), &stream->flow(), target.rank};
    am::Attached attached(*stream);
    const am::Description* const there = stream->queries().exposed();
    std::optional<am::ProviderAtomics> rows;
    if (by_provider && there != nullptr)
        rows.emplace(*stream, am::NetworkStack::mine().endpoint(), there->base, there->key);
    Transport& transport = rows      ? static_cast<Transport&>(*rows)
                           : dynamic ? static_cast<Transport&>(attached)
                                     : *stream;
    const Fault fault = nothing ? stream->finish() : op::execute(call, what, start, transport);
    stream->flow().operation.notification = am::kNoNotification;  // a refused operation has left it
    if (pending != nullptr) stream->flow().issued();
    if (incomplete.load(std::memory_order_acquire) != 0) epoch::mark_incomplete(*this, target);
    return fault;
}

}  // namespace osc
