// Creation and free. On a node both go through shared memory only: a slot made by the first process, two barriers of
// the team for creation, one of the window and a count of departures for free.
#include "window/create.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "config/options.h"
#include "diag/log.h"
#include "epoch/epoch.h"
#include "host/host.h"
#include "window/device.h"
#include "window/registry.h"

namespace osc {
namespace {

using diag::fail;

bool info_is(const Request& request, const char* key, const char* value) {
    if (request.info == MPI_INFO_NULL) return false;
    char text[64];
    int found = 0;
    host::real().Info_get(request.info, key, sizeof text - 1, text, &found);
    return found && std::strcmp(text, value) == 0;
}

bool contiguous(const Request& request) {
    return request.flavor == MPI_WIN_FLAVOR_SHARED && !info_is(request, "alloc_shared_noncontig", "true");
}

// This process's memory and its description, as far as it can be had without the others.
Fault prepare(Window& window, const Request& request, shm::ControlBlock& block) {
    window.bytes = request.size;
    window.unit = static_cast<int>(request.unit);
    block.size = static_cast<std::uint64_t>(request.size);
    block.unit = static_cast<std::uint64_t>(request.unit);
    block.arena_rank = window.me;
    if (request.fault != Fault::None) return request.fault;
    const auto bytes = static_cast<std::size_t>(request.size);
    shm::Arena& arena = shm::Arena::mine();
    if (request.flavor == MPI_WIN_FLAVOR_DYNAMIC) {
        block.memory = shm::Memory::Dynamic;
        window.regions = std::make_unique<shm::RegionTable>(block);
        return Fault::None;
    }
    if (request.flavor == MPI_WIN_FLAVOR_CREATE) {
        window.base = request.base;
        block.base = reinterpret_cast<std::uint64_t>(request.base);
        block.offset = bytes > 0 ? arena.offset_of(request.base, bytes) : shm::kNoOffset;
        block.memory = bytes == 0                       ? shm::Memory::None
                       : block.offset != shm::kNoOffset ? shm::Memory::Shared
                                                        : shm::Memory::Private;
        if (block.memory == shm::Memory::Private && in_device_memory(request.base))
            window.slot.header().device.store(1, std::memory_order_relaxed);
        return Fault::None;
    }
    if (contiguous(request)) {
        block.arena_rank = 0;
        block.memory = bytes == 0 ? shm::Memory::None : shm::Memory::Shared;
        return Fault::None;  // the place follows when all sizes are known
    }
    const shm::Piece piece = arena.allocate(bytes, wanted_alignment(request.info), true);
    if (!piece) return fail(Fault::NoMem, "no shared memory for %zu bytes: %s", bytes, std::strerror(errno));
    window.owned = piece.address;
    window.base = piece.address;
    block.base = reinterpret_cast<std::uint64_t>(piece.address);
    block.offset = piece.offset;
    block.memory = bytes == 0 ? shm::Memory::None : shm::Memory::Shared;
    return Fault::None;
}

// Lays the members' memory out one behind the other in one piece of rank 0's arena.
Fault lay_out_segment(Window& window, const Request& request) {
    std::uint64_t total = 0;
    std::uint64_t before = 0;
    bool too_large = false;  // the same for all, who see the same sizes
    for (std::uint32_t rank = 0; rank < window.size; ++rank) {
        if (rank == window.me) before = total;
        too_large = __builtin_add_overflow(total, window.slot.block(rank).size, &total) || too_large;
    }
    if (too_large) return fail(Fault::NoMem, "the sizes of the segments add up to more than 64 bits can say");
    std::atomic<std::uint64_t>& published = window.slot.header().segment;
    if (window.me == 0) {
        const shm::Piece piece =
            shm::Arena::mine().allocate(std::max<std::size_t>(total, 1), wanted_alignment(request.info), true);
        if (piece) {
            window.owned = piece.address;
            published.store(piece.offset + 1, std::memory_order_release);
        }
    }
    window.team.shared().barrier.arrive_and_wait(window.size, [&] { return window.any_dead() >= 0; });
    const std::uint64_t offset = published.load(std::memory_order_acquire);
    if (offset == 0)
        return fail(Fault::NoMem, "no shared memory for %llu bytes in one piece",
                    static_cast<unsigned long long>(total));
    window.segment_offset = offset - 1;
    window.segment_bytes = total;
    window.segment = window.team.map(0, window.segment_offset, total);
    if (window.segment == nullptr)
        return fail(Fault::NoMem, "cannot map %llu bytes of shared memory: %s", static_cast<unsigned long long>(total),
                    std::strerror(errno));
    shm::ControlBlock& mine = window.mine();
    window.base = window.segment + before;
    mine.base = reinterpret_cast<std::uint64_t>(window.base);
    mine.offset = window.segment_offset + before;
    return Fault::None;
}

// The largest of what the processes of the node give.
void raise_to(std::atomic<std::uint32_t>& word, std::uint32_t mine) {
    std::uint32_t seen = word.load(std::memory_order_relaxed);
    while (seen < mine && !word.compare_exchange_weak(seen, mine, std::memory_order_acq_rel)) {
    }
}

void raise_error(shm::SlotHeader& header, int error) {
    raise_to(header.error, static_cast<std::uint32_t>(error));
}

// The slot of the next window of this team, made by its first process and mapped by all, or by none: null then. The
// second barrier also keeps the first process from publishing the next slot before everyone has read this one.
std::byte* next_slot(Window& window, bool& met) {
    TeamShared& shared = window.team.shared();
    const std::uint64_t number = window.team.next_creation();
    const std::size_t bytes = shm::Slot::bytes_for(window.slot.count_here(window.size), window.size);
    shm::Piece piece;
    if (window.me == window.team.leader()) {
        piece = shm::Arena::mine().allocate(bytes, 64, true);
        if (piece) shm::construct({piece.address, shm::Slot::stride_for(window.size), window.slot.places}, window.size);
        shared.slot.store(piece ? piece.offset : 0, std::memory_order_release);
    }
    const auto meet = [&] {
        return shared.barrier.arrive_and_wait(window.team.mates(), [&] { return window.any_dead() >= 0; });
    };
    met = meet();
    window.slot_offset = shared.slot.load(std::memory_order_acquire);
    std::byte* address =
        met && window.slot_offset != 0 ? window.team.map(window.team.leader(), window.slot_offset, bytes) : nullptr;
    if (address == nullptr) shared.unmapped.store(number, std::memory_order_release);
    met = met && meet();
    if (met && shared.unmapped.load(std::memory_order_acquire) != number) return address;
    if (address != nullptr) window.team.unmap(window.team.leader(), window.slot_offset, address, bytes);
    if (piece && met) shm::Arena::mine().release(piece.address);
    return nullptr;
}

// A handle that the host has freed may be issued again at once, to another thread: no handle is made between the
// host's free of a window and its leaving our table. Recursive, because attribute callbacks may do either.
std::recursive_mutex g_handles;

int make_handle(Window& window) {
    const std::lock_guard lock(g_handles);
    return host::real().Win_create(nullptr, 0, 1, MPI_INFO_NULL, host::self_comm(), &window.handle);
}

void drop_memory(void* owned, std::byte* slot, bool slot_is_mine) {
    if (owned != nullptr) shm::Arena::mine().release(owned);
    if (slot_is_mine && slot != nullptr) shm::Arena::mine().release(slot);
}

// Rank 0 gives the slot back when the others no longer look at it; false if a death leaves open whether they do.
bool await_departures(Window& window) {
    const shm::SlotHeader& header = window.slot.header();
    return shm::wait_until(
        window.team.shared().departures,
        [&] { return header.departed.load(std::memory_order_seq_cst) == window.team.mates(); },
        [&] { return window.any_dead() >= 0; });
}

}  // namespace

int error_class(Fault fault) {
    switch (fault) {
        case Fault::None:
            return MPI_SUCCESS;
        case Fault::Arg:
            return MPI_ERR_ARG;
        case Fault::Assert:
            return MPI_ERR_ASSERT;
        case Fault::Attach:
            return MPI_ERR_RMA_ATTACH;
        case Fault::Base:
            return MPI_ERR_BASE;
        case Fault::Buffer:
            return MPI_ERR_BUFFER;
        case Fault::Count:
            return MPI_ERR_COUNT;
        case Fault::Dead:
            return MPI_ERR_OTHER;
        case Fault::Disp:
            return MPI_ERR_DISP;
        case Fault::Flavor:
            return MPI_ERR_RMA_FLAVOR;
        case Fault::Group:
            return MPI_ERR_GROUP;
        case Fault::Info:
            return MPI_ERR_INFO;
        case Fault::LockType:
            return MPI_ERR_LOCKTYPE;
        case Fault::NoMem:
            return MPI_ERR_NO_MEM;
        case Fault::Op:
            return MPI_ERR_OP;
        case Fault::Other:
            return MPI_ERR_OTHER;
        case Fault::Range:
            return MPI_ERR_RMA_RANGE;
        case Fault::Rank:
            return MPI_ERR_RANK;
        case Fault::Shared:
            return MPI_ERR_RMA_SHARED;
        case Fault::Size:
            return MPI_ERR_SIZE;
        case Fault::Sync:
            return MPI_ERR_RMA_SYNC;
        case Fault::Truncate:
            return MPI_ERR_TRUNCATE;
        case Fault::Type:
            return MPI_ERR_TYPE;
        case Fault::Win:
            return MPI_ERR_WIN;
    }
    return MPI_ERR_OTHER;
}

int create_window(const Request& request, Window*& result, const char*& reason) {
    result = nullptr;
    Team* team = nullptr;
    const bool wants = wants_two_level(request.info);
    if (const int error = Team::of(request.comm, request.flavor == MPI_WIN_FLAVOR_SHARED, wants, team, reason);
        error != MPI_SUCCESS) {
        fail(Fault::Other, "%s", reason);
        return error;
    }
    reason = team->not_served();
    if (reason != nullptr) {
        const bool unshareable = request.flavor == MPI_WIN_FLAVOR_SHARED && team->spans_nodes();
        team->release();
        if (!unshareable) return MPI_SUCCESS;
        fail(Fault::Shared, "the processes of the communicator cannot share memory: they are not all on one node");
        return error_class(Fault::Shared);
    }
    if (request.flavor == MPI_WIN_FLAVOR_SHARED && team->places() != nullptr) {
        team->release();
        fail(Fault::Shared, "the processes of the communicator cannot share memory: they are not all on one node");
        return error_class(Fault::Shared);
    }
    auto window = std::make_unique<Window>(*team);
    window->flavor = request.flavor;
    window->threaded = host::threads();
    window->shared_flavour = request.flavor == MPI_WIN_FLAVOR_SHARED;
    window->pointers_given = window->shared_flavour;
    window->slot.places = team->places();
    bool met = false;
    window->slot.address = next_slot(*window, met);
    window->slot.stride = shm::Slot::stride_for(window->size);
    // A node without a slot has nobody who could go on; where there are others, they have to learn it.
    int early[] = {window->slot.address == nullptr ? 1 : 0, wants ? 1 : 0};
    const auto& [no_slot, two_level] = early;
    if (team->places() != nullptr) {
        if (const int error = team->largest(request.comm, early); error != MPI_SUCCESS) {
            fail(Fault::Dead, "a process of the communicator died");
            return error;
        }
    }
    if (no_slot != 0) {
        const int dead = window->any_dead();
        if (dead >= 0) fail(Fault::Dead, "rank %d of the communicator died", dead);
        if (dead < 0 && !met) fail(Fault::Dead, "a process of the communicator died");
        if (dead >= 0 || !met) return MPI_ERR_OTHER;
        fail(Fault::NoMem, "no shared memory, or no descriptor to map it, for the window's control data");
        return MPI_ERR_NO_MEM;
    }
    shm::SlotHeader& header = window->slot.header();
    Fault fault = prepare(*window, request, window->mine());
    int error = error_class(fault);
    if (error == MPI_SUCCESS && make_handle(*window) != MPI_SUCCESS) {
        window->handle = MPI_WIN_NULL;
        fault = fail(Fault::Other, "the host MPI has no window or communicator left (it has room for about 2,000)");
        error = MPI_ERR_OTHER;
    }
    raise_error(header, error);
    raise_to(header.fence_strategy, static_cast<std::uint32_t>(wanted_strategy(strategy::Kind::Fence, request.info)));
    raise_to(header.checks, config::values().check ? 1 : 0);
    window->state_agent_need();
    const auto meet = [&] {
        return header.barrier.arrive_and_wait(window->team.mates(), [&] { return window->any_dead() >= 0; });
    };
    met = meet();
    if (met && contiguous(request)) {
        // Nobody has an error, or all skip this: the barrier has made the word the same for all.
        if (header.error.load(std::memory_order_acquire) == 0) {
            fault = lay_out_segment(*window, request);
            raise_error(header, error_class(fault));
        }
        met = meet();
    }
    // Nobody sets these after the barrier, so all processes decide alike.
    bool device = header.device.load(std::memory_order_relaxed) != 0;
    if (met && !device && header.agents.load(std::memory_order_acquire) == (shm::kUnshared | shm::kUnreachable)) {
        if (const Fault agent = window->serve_by_agent(); agent != Fault::None) {
            fault = agent;
            raise_error(header, error_class(fault));
        }
        met = meet();
    }
    error = static_cast<int>(header.error.load(std::memory_order_acquire));
    bool lacking = false;
    if (window->slot.places != nullptr) {
        if (!met) error = MPI_ERR_OTHER;
        window->serve_network(two_level != 0);
        int agreed[] = {error, device ? 1 : 0, static_cast<int>(header.fence_strategy.load(std::memory_order_relaxed)),
                        window->lacks_lock_words() ? 1 : 0,
                        static_cast<int>(header.checks.load(std::memory_order_relaxed))};
        if (team->largest(request.comm, agreed) != MPI_SUCCESS) agreed[0] = MPI_ERR_OTHER;
        error = agreed[0];
        device = agreed[1] != 0;
        lacking = agreed[3] != 0;
        header.fence_strategy.store(static_cast<std::uint32_t>(agreed[2]), std::memory_order_relaxed);
        header.checks.store(static_cast<std::uint32_t>(agreed[4]), std::memory_order_relaxed);
    }
    if (!met && error == MPI_SUCCESS) {
        fail(Fault::Dead, "a process of the communicator died");
        error = MPI_ERR_OTHER;
    }
    if (error == MPI_SUCCESS && device) {
        reason = "a process gave device memory as its base";
    } else if (error == MPI_SUCCESS) {
        window->info = read_info(request.info, request.flavor, {});
        window->choose_lock_scheme(two_level != 0, lacking);
        window->choose_strategies(request.info,
                                  static_cast<int>(header.fence_strategy.load(std::memory_order_relaxed)));
        window->checks = header.checks.load(std::memory_order_relaxed) != 0;
        register_window(window->handle, window.get());
        result = window.release();
        return MPI_SUCCESS;
    } else if (fault == Fault::None) {
        fail(Fault::Other, "another process of the communicator could not create the window");
    }
    if (window->handle != MPI_WIN_NULL) host::real().Win_free(&window->handle);
    window->end_service();
    header.departed.fetch_add(1, std::memory_order_seq_cst);
    const bool first = window->me == window->team.leader();
    if (!first) window->team.shared().departures.ring();
    const bool all_gone = first && await_departures(*window);
    void* owned = met ? window->owned : nullptr;  // else the window may exist for others
    std::byte* slot = window->slot.address;
    window.reset();
    drop_memory(owned, slot, all_gone);
    return error;
}

Fault free_window(Window* window, int& host_error) {
    host_error = MPI_SUCCESS;
    if (const Fault fault = epoch::may_free(*window); fault != Fault::None) return fault;
    shm::SlotHeader& header = window->slot.header();
    window->let_in(~std::uint64_t{0}, false);  // there will be no other fence
    const bool met = window->departed || window->meet();
    const auto depart = [&] {
        if (window->departed) return;
        window->departed = true;
        header.departed.fetch_add(1, std::memory_order_seq_cst);
        window->team.shared().departures.ring();
    };
    {
        // Attribute delete callbacks may still query the window, so it leaves the table after them.
        const std::lock_guard lock(g_handles);
        MPI_Win handle = window->handle;
        freeing(handle);
        host_error = host::real().Win_free(&handle);
        if (host_error != MPI_SUCCESS) {
            // An attribute callback refused, here alone. The window stays, for the user to free it again; the others
            // are not kept waiting, but their first process leaves the slot to us.
            header.kept.store(1, std::memory_order_release);
            depart();
            return Fault::None;
        }
        unregister_window(window->handle);
    }
    window->end_service();  // before the slot, which holds its locks, can go
    depart();
    // Where a process died, nobody knows of all others that they have ended what they do in the window: its memory is
    // given back by the end of this process only.
    const bool all_gone = window->me == window->team.leader() && await_departures(*window);
    const bool last = all_gone && header.kept.load(std::memory_order_acquire) == 0;
    void* owned = met ? window->owned : nullptr;
    std::byte* slot = window->slot.address;
    delete window;
    drop_memory(owned, slot, last);
    return met ? Fault::None : diag::fail(Fault::Dead, "a process of the window died before it freed the window");
}

}  // namespace osc
