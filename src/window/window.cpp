// The choice of a path to a target's memory, and the execution of operations outside the fast path.
#include "window/window.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <functional>

#include "epoch/epoch.h"
#include "op/pack.h"
#include "strategy/targets.h"
#include "transport/am/origin/agent_transport.h"
#include "transport/cma/cma_transport.h"
#include "transport/direct/direct.h"
#include "transport/dynamic.h"
#include "transport/mixed.h"

namespace osc {

Window::~Window() {
    complete_ops();  // nothing refers to this object then
    end_service();
    for (const Mapping& piece : mapped_)
        team.unmap(piece.arena_rank, piece.offset, piece.address, piece.bytes);
    notifications.unmap(*this);
    if (segment != nullptr) team.unmap(0, segment_offset, segment, segment_bytes);
    if (controls.address != nullptr)
        team.unmap(team.leader(), controls_offset, controls.address,
                   shm::ControlTable::bytes_for(team.local_size(), size));
    remote_sync = nullptr;
    net_.reset();
    views_.clear();  // their mappings are of the team's arenas
    team.release();
}

Path Window::remote_path(std::uint32_t rank) const {
    return team.cma_reaches(rank) ? Path::Cma : Path::Agent;
}

void Window::describe(Peer& peer, const shm::ControlBlock& block) {
    if (!is_local(peer.rank)) {
        peer.path = Path::Net;  // the target describes itself when an operation uses it
        return;
    }
    peer.unit = block.unit;
    switch (block.memory) {
        case shm::Memory::None:
            peer.path = Path::Direct;
            return;
        case shm::Memory::Dynamic:
            peer.path = Path::Dynamic;
            peer.regions = views_.emplace_back(std::make_unique<shm::RegionView>()).get();
            return;
        case shm::Memory::Private:
        case shm::Memory::Mixed:
        case shm::Memory::Shared:
            break;
    }
    if (peer.rank == me) {
        peer.base = static_cast<std::byte*>(base);
        peer.path = Path::Direct;
        return;
    }
    if (block.memory == shm::Memory::Shared) {
        if (segment != nullptr) {
            peer.base = segment + (block.offset - segment_offset);
        } else {
            peer.base = team.map(block.arena_rank, block.offset, block.size);
            if (peer.base != nullptr) mapped_.push_back({block.arena_rank, block.offset, peer.base, block.size});
        }
        if (peer.base != nullptr) {
            peer.path = Path::Direct;
            return;
        }
    }
    if (block.memory == shm::Memory::Mixed) {
        const std::size_t mapped_bytes = block.shared_end - block.shared_first;
        if (std::byte* const part = team.map(block.arena_rank, block.offset, mapped_bytes); part != nullptr) {
            mapped_.push_back({block.arena_rank, block.offset, part, mapped_bytes});
            peer.base = part - block.shared_first;
            peer.path = Path::Mixed;
            return;
        }
    }
    peer.path = remote_path(peer.rank);
}

std::optional<std::vector<shm::Region>> Window::read_regions(std::uint32_t rank, std::uint64_t offset,
                                                             std::uint64_t count) const {
    std::vector<shm::Region> copy(count);
    if (count == 0) return copy;
    const std::size_t length = count * sizeof(shm::Region);
    std::byte* table = team.map(rank, offset, length);
    if (table == nullptr) return std::nullopt;
    auto* from = reinterpret_cast<std::uint64_t*>(table);
    auto* to = reinterpret_cast<std::uint64_t*>(copy.data());
    for (std::size_t i = 0; i < length / sizeof(std::uint64_t); ++i)
        to[i] = std::atomic_ref<std::uint64_t>(from[i]).load(std::memory_order_acquire);
    team.unmap(rank, offset, table, length);
    return copy;
}

// Calls execute(transport to the target's agent). A fault of an earlier operation is returned first.
template <class Execute>
Fault Window::by_agent(Peer& target, std::uint64_t target_base, Execute&& execute) {
    const shm::WaitScope waits(shm::WaitKind::Operations, id, me, target.rank);
    if (incomplete.load(std::memory_order_acquire) != 0)
        if (const Fault late = await_operations(am::kNoRank); late != Fault::None) return late;
    am::AgentRoute* route = nullptr;
    if (const Fault fault = connect_agent(target, route); fault != Fault::None) return fault;
    am::AgentTransport transport(am::Outbox::mine(), *route, target.control().served, target_base, target.rank,
                                 &pending_);
    const Fault fault = execute(transport);
    if (incomplete.load(std::memory_order_acquire) != 0) epoch::mark_incomplete(*this, target);
    return fault;
}

Fault Window::execute_dynamic(Peer& target, const op::Call& call, const Update& what, std::int64_t start) {
    const std::uint32_t rank = target.rank;
    auto attached = target.regions->current(
        target.control(), [&](std::uint64_t offset, std::uint64_t count) { return read_regions(rank, offset, count); },
        [&] { return !alive(rank); });
    const int error = errno;
    if (attached == nullptr && !alive(rank))
        return base::fail(Fault::Dead, "rank %u died, and its memory with it", rank);
    if (attached == nullptr)
        return base::fail(Fault::NoMem, "cannot map the table of the regions that rank %u has attached: %s", rank,
                          std::strerror(error));
    const shm::Stripes stripes{target.control(), me, *this};
    const bool own = rank == me;
    shm::PeerArena& arena = team.process(rank).arena;
    const shm::AttachedRegions& copy = *attached;
    const bool agent = !own && remote_path(rank) == Path::Agent;
    const auto locate = [&](const shm::Region& region) {
        Dynamic::Mapped mapped{reinterpret_cast<std::byte*>(region.base), region.base, region.base + region.size};
        if (!own) mapped = {copy.locate(region, arena), region.shared.first, region.shared.end};
        if (mapped.here != nullptr)
            target.regions->last.note(copy.version(), mapped.first, mapped.end, mapped.here);
        else if (!agent && !region.shared)
            target.regions->last_unmapped.note(copy.version(), region.base, region.base + region.size,
                                               reinterpret_cast<std::byte*>(region.base));
        return mapped;
    };
    stats::t_path = agent ? stats::DataPath::Agent : stats::DataPath::ProcessVm;
    if (agent) {
        return by_agent(target, 0, [&](am::AgentTransport& unmapped) {
            Dynamic transport(std::move(attached), stripes, std::ref(locate), unmapped);
            return op::execute(call, what, start, transport);
        });
    }
    cma::Cross unmapped(arena.address().pid, 0, stripes);
    Dynamic transport(std::move(attached), stripes, std::ref(locate), unmapped);  // by reference: no allocation
    return op::execute(call, what, start, transport);
}

// Computes the operation's first byte at the target; a fault if it touches a byte outside the window. `nothing`: the
// operation touches no byte.
Fault Window::check_bounds(Peer& target, const op::Call& call, std::int64_t& start, bool& nothing) {
    op::Bounds touched;
    const std::uint64_t scale = target.path == Path::Dynamic ? 1 : target.unit;
    if (const Fault fault = op::find_extent(call, scale, start, touched); fault != Fault::None) return fault;
    nothing = touched.lo == touched.hi;
    if (nothing || target.path == Path::Dynamic) return Fault::None;
    const std::uint64_t bytes_there = target.control().size;
    if (touched.lo < 0 || static_cast<std::uint64_t>(touched.hi) > bytes_there)
        return base::fail(Fault::Range, "bytes [%lld, %lld) of rank %u, whose window has %llu bytes",
                          static_cast<long long>(touched.lo), static_cast<long long>(touched.hi), target.rank,
                          static_cast<unsigned long long>(bytes_there));
    return Fault::None;
}

Fault Window::check_call(const op::Call& call, Update& what) const {
    const Fault fault = op::check(call, what);
    return fault == Fault::None ? check_atomics(call, what) : fault;
}

Fault Window::execute_mixed(Peer& target, const op::Call& call, const Update& what, std::int64_t start) {
    const shm::ControlBlock& block = target.control();
    const auto first = static_cast<std::int64_t>(block.shared_first);
    const auto end = static_cast<std::int64_t>(block.shared_end);
    const shm::Stripes stripes{target.control(), me, *this};
    if (remote_path(target.rank) == Path::Agent) {
        stats::t_path = stats::DataPath::Agent;
        return by_agent(target, block.base, [&](am::AgentTransport& edges) {
            Mixed transport(target.base + first, first, end, stripes, edges);
            return op::execute(call, what, start, transport);
        });
    }
    stats::t_path = stats::DataPath::ProcessVm;
    cma::Cross edges(team.process(target.rank).arena.address().pid, block.base, stripes);
    Mixed transport(target.base + first, first, end, stripes, edges);
    return op::execute(call, what, start, transport);
}

Fault Window::execute(Peer& target, const op::Call& call, am::PendingOp* pending) {
    Update what{};
    if (const Fault fault = check_call(call, what); fault != Fault::None) return fault;
    const bool accumulates = call.kind != op::OpKind::Put && call.kind != op::OpKind::Get;
    if (target.path == Path::Net || (provider_atomics && accumulates)) return execute_net(target, call, what, pending);
    if (checks && call.kind != op::OpKind::Get && what.op != Op::NoOp) target.control().note_update(me);
    std::int64_t start = 0;
    bool nothing = false;
    if (const Fault fault = check_bounds(target, call, start, nothing); fault != Fault::None || nothing) return fault;
    if (target.path == Path::Dynamic) return execute_dynamic(target, call, what, start);
    if (target.path == Path::Mixed) return execute_mixed(target, call, what, start);
    const shm::Stripes stripes{target.control(), me, *this};
    if (target.path == Path::Direct) {
        if (call.kind == op::OpKind::Put || call.kind == op::OpKind::Get) {
            std::byte* there = target.base + start;
            const op::Operand& o = call.origin;
            const op::Operand& t = call.target;
            if (call.kind == op::OpKind::Put)
                op::copy(*t.layout, t.count, there, *o.layout, o.count, o.base);
            else
                op::copy(*o.layout, o.count, o.base, *t.layout, t.count, there);
            return Fault::None;
        }
        shm::Direct transport(target.base, stripes);
        return op::execute(call, what, start, transport);
    }
    if (target.path == Path::Cma) {
        cma::Cross transport(team.process(target.rank).arena.address().pid, target.control().base, stripes);
        return op::execute(call, what, start, transport);
    }
    return by_agent(target, target.control().base,
                    [&](am::AgentTransport& transport) { return op::execute(call, what, start, transport); });
}

// An agent may still be executing the operation when execute() returns.
Fault Window::execute_notified(Peer& target, const op::Call& call, am::PendingOp* pending,
                               const Notification& notification) {
    if (target.path == Path::Net) {
        Update what{};
        if (const Fault fault = check_call(call, what); fault != Fault::None) return fault;
        return execute_net(target, call, what, pending, notification.index);
    }
    Fault fault = execute(target, call, pending);
    if (fault == Fault::None) fault = complete_ops(target.rank);
    if (fault == Fault::None) notification.board->add(notification.index);
    return fault;
}

Fault Window::defer(Peer& target, op::Deferral&& operation) {
    Update what{};
    if (const Fault fault = check_call(operation.call, what); fault != Fault::None) return fault;
    std::int64_t start = 0;
    bool nothing = false;
    am::Stream* stream = nullptr;
    std::unique_lock<std::mutex> lock;
    const Fault fault = target.path == Path::Net ? reach_net(target, operation.call, lock, stream, start, nothing)
                                                 : check_bounds(target, operation.call, start, nothing);
    if (lock.owns_lock()) lock.unlock();
    if (fault != Fault::None || nothing) return fault;
    const std::uint32_t rank = target.rank;
    stats::t_path = stats::DataPath::Message;
    return queue_.add(rank, std::move(operation)) < op::Queue::kMost ? Fault::None
                                                                     : strategy::perform_queued(*this, rank);
}

// A put or get that was counted as a message when it was queued may go directly after all.
void Window::note_path(const Peer& target, const op::Call& call) {
    if (stats == nullptr || target.path != Path::Net || stats::t_path != stats::DataPath::Direct) return;
    const stats::Kind kind = call.kind == op::OpKind::Put ? stats::Kind::Put : stats::Kind::Get;
    stats->reroute(kind, stats::DataPath::Message, stats::DataPath::Direct,
                   call.target.count * call.target.layout->size());
}

Fault Window::perform_deferred(std::uint32_t target) {
    Fault first = Fault::None;
    queue_.empty(target, [&](const op::Deferral& operation) {
        if (const Fault fault = execute(peer(target), operation.call); fault != Fault::None)
            first = fault;
        else
            note_path(peer(target), operation.call);
    });
    return first;
}

}  // namespace osc
