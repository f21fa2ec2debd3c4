// The ways to targets' memory.
// Build: osc
#include "window/window.h"

#include "host/host.h"
#include "reach/mapped.h"
#include "reach/mixed.h"
#include "reach/net.h"
#include "reach/private.h"
#include "reach/regions.h"

namespace osc {

Window::Window(Team& owner) : core(owner.me(), owner.size(), *this), team(owner) {}

Window::~Window() {
    core.complete_ops();  // nothing refers to this object then
    end_service();
    for (const Mapping& piece : mapped_)
        team.unmap(piece.rank, piece.offset, piece.address, piece.bytes);
    core.remote_sync = nullptr;
    net_.reset();
    ways_.clear();  // their mappings are of the team's arenas
    team.release();
}

std::byte* Window::map(std::uint32_t rank, std::uint64_t offset, std::size_t length) {
    const std::lock_guard lock(mapped_mutex_);
    for (const Mapping& piece : mapped_)
        if (piece.rank == rank && piece.offset == offset && piece.bytes >= length) return piece.address;
    Mapping& piece = mapped_.emplace_back(Mapping{rank, offset, nullptr, length});
    std::byte* const address = piece.address = team.map(rank, offset, length);
    if (address == nullptr) mapped_.pop_back();
    return address;
}

void Window::make_ways() {
    using reach::Reach;
    shm::on_loss([](const shm::Permit& permit) {
        host::fail_next_request(true);
        visit_windows([&](Window& window) { window.lose(permit); });
    });
    core.can_defer = flavor != MPI_WIN_FLAVOR_DYNAMIC;  // there the call looks up the attached regions
    const auto add = [&](Way way, std::unique_ptr<Reach> made) {
        core.reaches[static_cast<std::size_t>(way)] = made.get();
        ways_.push_back(std::move(made));
    };
    auto unmapped = std::make_unique<reach::Private>(core.origin, core.id, team);
    private_way_ = unmapped.get();
    auto mapped = std::make_unique<reach::Mapped>(core.origin);
    if (flavor == MPI_WIN_FLAVOR_DYNAMIC) {
        auto by_region = std::make_unique<reach::Regions>(core.origin, *unmapped);
        regions_way_ = by_region.get();
        add(Way::Regions, std::move(by_region));
    }
    add(Way::Mixed, std::make_unique<reach::Mixed>(core.origin, *mapped, *unmapped));
    add(Way::Mapped, std::move(mapped));
    add(Way::Private, std::move(unmapped));
}

void Window::lose(const shm::Permit& permit) {
    for (std::uint32_t rank = 0; rank < core.size; ++rank) {
        Target& target = core.targets[rank];
        if (rank == core.me || target.block.load(std::memory_order_acquire) == nullptr || !core.is_local(rank) ||
            !team.arena_of(rank).has(permit))
            continue;
        if (target.way == Way::Regions) {
            target.regions->forget();
        } else if (target.way == Way::Mapped && target.control().memory == shm::Memory::Private) {
            target.forbid();
            target.full_limit = 0;
            target.way = Way::Private;
        } else {
            continue;
        }
        private_way_->note_death(rank);
        core.flushable.store(0, std::memory_order_relaxed);
        if (target.held_lock == HeldLock::Exclusive) target.held_lock = HeldLock::ExclusiveInUse;
    }
}

void Window::describe(Target& target, const shm::ControlBlock& block) {
    if (!core.is_local(target.rank)) {
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
    if (target.rank == core.me) {
        target.base = static_cast<std::byte*>(base);
        target.way = Way::Mapped;
        return;
    }
    if (block.memory != shm::Memory::Mixed && block.offset != shm::kNoOffset) {
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

}  // namespace osc
