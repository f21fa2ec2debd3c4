// The ways to targets' memory, and the execution of operations outside the fast paths.
#include "window/window.h"

#include "core/epoch.h"
#include "core/targets.h"
#include "reach/mapped.h"
#include "reach/mixed.h"
#include "reach/net.h"
#include "reach/private.h"
#include "reach/regions.h"

namespace osc {

Window::Window(Team& owner) : Core(owner.me(), owner.size()), team(owner) {}

Window::~Window() {
    complete_ops();  // nothing refers to this object then
    end_service();
    for (const Mapping& piece : mapped_)
        team.unmap(piece.rank, piece.offset, piece.address, piece.bytes);
    remote_sync = nullptr;
    net_.reset();
    ways_.clear();  // their mappings are of the team's arenas
    team.release();
}

std::byte* Window::map(std::uint32_t rank, std::uint64_t offset, std::size_t length) {
    const std::lock_guard lock(mapped_mutex_);
    for (const Mapping& piece : mapped_)
        if (piece.rank == rank && piece.offset == offset && piece.bytes >= length) return piece.address;
    std::byte* const address = team.map(rank, offset, length);
    if (address != nullptr) mapped_.push_back({rank, offset, address, length});
    return address;
}

void Window::make_ways() {
    using reach::Reach;
    const auto add = [&](Way way, std::unique_ptr<Reach> made) {
        reaches[static_cast<std::size_t>(way)] = made.get();
        ways_.push_back(std::move(made));
    };
    auto unmapped = std::make_unique<reach::Private>(me, id, *this, team, incomplete);
    private_way_ = unmapped.get();
    if (flavor == MPI_WIN_FLAVOR_DYNAMIC) {
        auto by_region = std::make_unique<reach::Regions>(me, *this, *private_way_);
        regions_way_ = by_region.get();
        add(Way::Regions, std::move(by_region));
    }
    add(Way::Mapped, std::make_unique<reach::Mapped>(me, *this));
    add(Way::Mixed, std::make_unique<reach::Mixed>(*private_way_));
    add(Way::Private, std::move(unmapped));
}

void Window::describe(Target& target, const shm::ControlBlock& block) {
    if (!is_local(target.rank)) {
        target.way = Way::Net;  // the target describes itself when an operation uses it
        return;
    }
    target.unit = block.unit;
    switch (block.memory) {
        case shm::Memory::None:
            target.way = Way::Mapped;
            return;
        case shm::Memory::Dynamic:
            target.way = Way::Regions;
            target.regions = regions_way_->view();
            return;
        case shm::Memory::Private:
        case shm::Memory::Mixed:
        case shm::Memory::Shared:
            break;
    }
    if (target.rank == me) {
        target.base = static_cast<std::byte*>(base);
        target.way = Way::Mapped;
        return;
    }
    if (block.memory == shm::Memory::Shared) {
        target.base = segment != nullptr ? segment + (block.offset - segment_offset)
                                         : map(block.arena_rank, block.offset, block.size);
        if (target.base != nullptr) {
            target.way = Way::Mapped;
            return;
        }
    }
    if (block.memory == shm::Memory::Mixed) {
        const std::size_t mapped_bytes = block.shared_end - block.shared_first;
        if (std::byte* const part = map(block.arena_rank, block.offset, mapped_bytes); part != nullptr) {
            target.base = part - block.shared_first;
            target.way = Way::Mixed;
            return;
        }
    }
    target.way = Way::Private;
}

Fault Window::check_call(const op::Call& call, Update& what) const {
    const Fault fault = op::check(call, what);
    return fault == Fault::None ? check_atomics(call, what) : fault;
}

Fault Window::execute(Target& target, const op::Call& call, net::PendingOp* pending, std::uint32_t notification) {
    Update what{};
    if (const Fault fault = check_call(call, what); fault != Fault::None) return fault;
    const bool accumulates = call.kind != op::OpKind::Put && call.kind != op::OpKind::Get;
    if (checks && is_local(target.rank) && call.kind != op::OpKind::Get && what.op != Op::NoOp)
        target.control().note_update(me);
    reach::Reach& way = accumulates && accumulate_way_ != nullptr ? *accumulate_way_ : reach(target);
    const reach::Outcome outcome = way.perform(target, call, what, {pending, notification});
    if (outcome.in_flight && incomplete.load(std::memory_order_acquire) != 0) epoch::mark_incomplete(*this, target);
    return outcome.fault;
}

// An agent may still be executing the operation when execute() returns.
Fault Window::execute_notified(Target& target, const op::Call& call, net::PendingOp* pending,
                               const Notification& notification) {
    if (notification.board == nullptr) return execute(target, call, pending, notification.index);
    Fault fault = execute(target, call, pending);
    if (fault == Fault::None) fault = complete_ops(target.rank);
    if (fault == Fault::None) notification.board->add(notification.index);
    return fault;
}

Fault Window::defer(Target& target, op::Deferral&& operation) {
    Update what{};
    if (const Fault fault = check_call(operation.call, what); fault != Fault::None) return fault;
    bool nothing = false;
    const Fault fault = reach(target).admit(target, operation.call, nothing);
    if (fault != Fault::None || nothing) return fault;
    const std::uint32_t rank = target.rank;
    return queue_.add(rank, std::move(operation)) < op::Queue::kMost ? Fault::None
                                                                     : strategy::perform_queued(*this, rank);
}

// A put or get that was counted as a message when it was queued may go directly after all.
void Window::recount(const Target& target, const op::Call& call) {
    const bool is_put = call.kind == op::OpKind::Put;
    if (stats == nullptr || !is_remote(target.way) || (!is_put && call.kind != op::OpKind::Get)) return;
    if (stats::t_path != stats::DataPath::Direct) return;
    const stats::Kind kind = is_put ? stats::Kind::Put : stats::Kind::Get;
    stats->reroute(kind, stats::DataPath::Message, stats::DataPath::Direct,
                   call.target.count * call.target.layout->size());
}

Fault Window::perform_deferred(std::uint32_t rank) {
    base::FirstFault first;
    queue_.empty(rank, [&](const op::Deferral& operation) {
        if (const Fault fault = execute(target(rank), operation.call); fault != Fault::None)
            first.note(fault);
        else
            recount(target(rank), operation.call);
    });
    return first.take();
}

}  // namespace osc
