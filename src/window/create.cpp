// Creation and free of windows. On a node both use shared memory only. Creation: the first process makes the control
// table, and the team passes two barriers; then the window's processes pass those of the table. Free: the window passes
// one barrier and counts departures.
// Build: -O2
#include "window/create.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/log.h"
#include "base/options.h"
#include "core/epoch.h"
#include "host/host.h"
#include "window/checker.h"
#include "window/device.h"
#include "window/registry.h"

namespace osc {
namespace {

using base::fail;

// Raises `word` to `mine`: the largest value of the node's processes remains.
void raise_to(std::atomic<std::uint32_t>& word, std::uint32_t mine) {
    std::uint32_t seen = word.load(std::memory_order_relaxed);
    while (seen < mine && !word.compare_exchange_weak(seen, mine, std::memory_order_acq_rel)) {
    }
}

// A barrier of the node's processes; false if one of the window's processes has died.
bool pass_barrier(shm::Barrier& barrier, Window& window) {
    return barrier.arrive_and_wait(window.team.local_size(), [&] { return window.dead_in_collective() >= 0; });
}

// Allocates memory for this process alone.
Fault allocate_own(Window& window, const Request& request, shm::ControlBlock& block) {
    const auto bytes = static_cast<std::size_t>(request.size);
    const shm::ArenaBlock piece = shm::Arena::mine().allocate(bytes, wanted_alignment(request.info), true);
    if (!piece) return fail(Fault::NoMem, "no shared memory for %zu bytes: %s", bytes, std::strerror(errno));
    window.owned = piece.address;
    window.base = piece.address;
    block.base = reinterpret_cast<std::uint64_t>(piece.address);
    block.offset = piece.offset;
    return Fault::None;
}

// Allocates this process's memory and describes it in its control block, as far as that needs no other process.
Fault prepare(Window& window, const Request& request, shm::ControlBlock& block) {
    window.bytes = request.size;
    window.unit = request.unit;
    window.shown_unit = static_cast<int>(std::min<MPI_Aint>(request.unit, INT_MAX));
    block.size = static_cast<std::uint64_t>(request.size);
    block.unit = static_cast<std::uint64_t>(request.unit);
    block.arena_rank = window.core.me;
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
        if (block.memory != shm::Memory::Private) return Fault::None;
        if (in_device_memory(request.base))
            window.core.controls.header().device.store(1, std::memory_order_relaxed);
        else
            adopt_memory(window, request, block);
        return Fault::None;
    }
    block.memory = bytes == 0 ? shm::Memory::None : shm::Memory::Shared;
    if (request.flavor == MPI_WIN_FLAVOR_ALLOCATE) return allocate_own(window, request, block);
    // A shared window gets its memory when all processes have said whether they ask for one segment, and all sizes are
    // known. alloc_shared_noncontig permits other places, so one process without it decides.
    if (host::info_value(request.info, "alloc_shared_noncontig") != "true")
        raise_to(window.core.controls.header().contiguous, 1);
    return Fault::None;
}

// Places the memory of all members one behind the other in one piece of rank 0's arena.
Fault lay_out_segment(Window& window, const Request& request) {
    std::uint64_t total = 0;
    std::uint64_t before = 0;
    bool too_large = false;  // the same on all processes, because they add up the same sizes
    for (std::uint32_t rank = 0; rank < window.core.size; ++rank) {
        if (rank == window.core.me) before = total;
        too_large = __builtin_add_overflow(total, window.core.controls.block(rank).size, &total) || too_large;
    }
    if (too_large) return fail(Fault::NoMem, "the sizes of the segments add up to 2^64 bytes or more");
    std::atomic<std::uint64_t>& published = window.core.controls.header().segment;
    if (window.core.me == 0) {
        const shm::ArenaBlock piece =
            shm::Arena::mine().allocate(std::max<std::size_t>(total, 1), wanted_alignment(request.info), true);
        if (piece) {
            window.owned = piece.address;
            published.store(piece.offset + 1, std::memory_order_release);
        }
    }
    pass_barrier(window.team.shared().barrier, window);
    const std::uint64_t offset = published.load(std::memory_order_acquire);
    if (offset == 0)
        return fail(Fault::NoMem, "no shared memory for %llu bytes in one piece",
                    static_cast<unsigned long long>(total));
    window.segment_offset = offset - 1;
    window.segment = window.map(0, window.segment_offset, std::max<std::uint64_t>(total, 1));
    if (window.segment == nullptr)
        return fail(Fault::NoMem, "cannot map %llu bytes of shared memory: %s", static_cast<unsigned long long>(total),
                    std::strerror(errno));
    shm::ControlBlock& mine = window.core.mine();
    mine.arena_rank = 0;
    window.base = window.segment + before;
    mine.base = reinterpret_cast<std::uint64_t>(window.base);
    mine.offset = window.segment_offset + before;
    return Fault::None;
}

void raise_error(shm::ControlTableHeader& header, int error) {
    raise_to(header.error, static_cast<std::uint32_t>(error));
}

// The control table of the team's window of this number. The node's first process makes it; all processes map it, or
// none does and all get null, also if one of them has no memory for its targets. The second barrier also keeps the
// first process from publishing the next table before all processes have read this one.
std::byte* next_controls(Window& window, std::uint64_t number, bool& met) {
    TeamShared& shared = window.team.shared();
    const std::size_t bytes =
        shm::ControlTable::bytes_for(window.core.controls.local_count(window.core.size), window.core.size);
    shm::ArenaBlock piece;
    if (window.core.me == window.team.leader()) {
        piece = shm::Arena::mine().allocate(bytes, 64, true);
        if (piece)
            shm::construct(
                {piece.address, shm::ControlTable::stride_for(window.core.size), window.core.controls.local_ranks},
                window.core.size);
        shared.controls.store(piece ? piece.offset : 0, std::memory_order_release);
    }
    met = pass_barrier(shared.barrier, window);
    const std::uint64_t offset = shared.controls.load(std::memory_order_acquire);
    std::byte* const address = met && offset != 0 && window.core.targets != nullptr
                                   ? window.map(window.team.leader(), offset, bytes)
                                   : nullptr;
    if (address == nullptr) shared.unmapped.store(number, std::memory_order_release);
    met = met && pass_barrier(shared.barrier, window);
    if (met && shared.unmapped.load(std::memory_order_acquire) != number) return address;
    if (piece && met) shm::Arena::mine().release(piece.address);
    return nullptr;
}

// The host may reissue a freed handle at once, to another thread. So no handle may be made between the host's free of a
// window and its removal from libosc's table. Recursive, because attribute callbacks may create and free windows.
std::recursive_mutex g_handles;

int make_handle(Window& window) {
    const std::lock_guard lock(g_handles);
    return abi::make_window(host::self_comm(), &window.handle);
}

// This process uses the control table no more. Said once.
void depart(Window& window) {
    if (std::exchange(window.departed, true)) return;
    window.core.controls.header().departed.fetch_add(1, std::memory_order_seq_cst);
    window.team.shared().departures.ring();
}

// Called by the node's first process: waits until no other process uses the control table; false if a process died, and
// it is unknown whether the others still use it.
bool await_departures(Window& window) {
    const shm::ControlTableHeader& header = window.core.controls.header();
    return shm::wait_until(
        window.team.shared().departures,
        [&] { return header.departed.load(std::memory_order_seq_cst) == window.team.local_size(); },
        [&] { return window.dead_in_collective() >= 0; });
}

Fault some_died() {
    return fail(Fault::Dead, "a process of the communicator died, or its connection is lost");
}

// Deletes a window whose host window is gone or was not made. `met`: no process uses its memory any more, because all
// have passed a barrier. After a death no process knows that of the others, so the memory is freed only when this
// process ends.
void destroy(Window* window, bool met) {
    window->end_service();  // it uses the locks in the control table, which depart() allows to be freed
    depart(*window);
    const bool all_gone = window->core.me == window->team.leader() && await_departures(*window);
    const bool last = all_gone && window->core.controls.header().kept.load(std::memory_order_acquire) == 0;
    shm::Arena& arena = shm::Arena::mine();
    void* const owned = met ? window->owned : nullptr;
    std::byte* const controls = window->core.controls.address;
    std::vector<sync::NotifyBoard*> boards = window->notifications.take_boards();
    delete window;
    if (owned != nullptr) arena.release(owned);
    if (last) arena.release(controls);
    if (met) Notifications::release(boards);
}

}  // namespace

int create_window(const Request& request, Window*& result, const char*& reason) {
    result = nullptr;
    Team* team = nullptr;
    const bool wants = wants_two_level(request.info);
    const bool atomics = wants || wanted_atomics(request.info) == AtomicsWish::Provider;
    if (const int error = Team::of(request.comm, request.flavor == MPI_WIN_FLAVOR_SHARED, atomics, team, reason);
        error != MPI_SUCCESS) {
        fail(Fault::Other, "%s", reason);
        return error;
    }
    reason = team->not_served();
    const bool spans = team->spans_nodes();
    const bool unshareable = spans && request.flavor == MPI_WIN_FLAVOR_SHARED;
    if (reason != nullptr || unshareable) {
        team->release();
        if (!unshareable) return MPI_SUCCESS;
        return error_class(
            fail(Fault::Shared, "the processes of the communicator cannot share memory: they are not all on one node"));
    }
    const shm::WaitScope waits(shm::WaitKind::Creation, 0, team->me());
    auto window = std::make_unique<Window>(*team);
    window->flavor = request.flavor;
    window->make_ways();
    window->core.threaded = host::threads();
    if (request.flavor == MPI_WIN_FLAVOR_CREATE || request.flavor == MPI_WIN_FLAVOR_DYNAMIC)
        window->adoption = wanted_adoption(request.info);
    window->core.shared_flavour = request.flavor == MPI_WIN_FLAVOR_SHARED;
    window->core.pointers_given = window->core.shared_flavour;
    window->core.controls.local_ranks = team->local_ranks();
    bool met = false;
    const std::uint64_t number = team->next_creation();
    window->core.id = team->window_id(number);
    window->core.controls.address = next_controls(*window, number, met);
    window->core.controls.stride = shm::ControlTable::stride_for(window->core.size);
    // Without a control table no process of the node can go on; the processes of the other nodes must learn it.
    int early[] = {window->core.controls.address == nullptr ? 1 : 0, wants ? 1 : 0};
    const auto& [no_controls, two_level] = early;
    window->open_statistics();
    if (spans) {
        if (const int error = team->largest(request.comm, early); error != MPI_SUCCESS) {
            some_died();
            return error;
        }
    }
    if (no_controls != 0) {
        if (const int dead = window->dead_in_collective(); dead >= 0)
            return error_class(fail(Fault::Dead, "rank %d of the communicator died, or its connection is lost", dead));
        if (!met) return error_class(some_died());
        // Another node has no table. No process of this one uses its own any more.
        std::byte* const controls = window->core.controls.address;
        const bool first = window->core.me == window->team.leader();
        window.reset();
        if (first && controls != nullptr) shm::Arena::mine().release(controls);
        return error_class(
            fail(Fault::NoMem, "no shared memory, or no descriptor to map it, for the window's control data"));
    }
    shm::ControlTableHeader& header = window->core.controls.header();
    Fault fault = prepare(*window, request, window->core.mine());
    int error = error_class(fault);
    if (error == MPI_SUCCESS && make_handle(*window) != MPI_SUCCESS) {
        window->handle = MPI_WIN_NULL;
        fault = fail(Fault::Other, "the host MPI has no window or communicator left (it has room for about 2,000)");
        error = error_class(fault);
    }
    raise_error(header, error);
    raise_to(header.fence_strategy,
             static_cast<std::uint32_t>(wanted_strategy(strategy::SyncKind::Fence, request.info)));
    raise_to(g_checker != nullptr ? header.checks : header.unchecked, 1);
    window->state_agent_need();
    met = pass_barrier(header.barrier, *window);
    if (met && request.flavor == MPI_WIN_FLAVOR_SHARED) {
        // After the barrier all processes read the same words, so all take the same branch.
        if (header.error.load(std::memory_order_acquire) == 0) {
            fault = header.contiguous.load(std::memory_order_relaxed) != 0
                        ? lay_out_segment(*window, request)
                        : allocate_own(*window, request, window->core.mine());
            raise_error(header, error_class(fault));
        }
        met = pass_barrier(header.barrier, *window);
    }
    // No process sets these words after the barrier, so all decide alike.
    if (met && header.device.load(std::memory_order_relaxed) == 0 &&
        header.agents.load(std::memory_order_acquire) == (shm::kUnshared | shm::kUnreachable)) {
        if (const Fault agent = window->serve_by_agent(); agent != Fault::None) {
            fault = agent;
            raise_error(header, error_class(fault));
        }
        met = pass_barrier(header.barrier, *window);
    }
    if (spans) window->serve_network(two_level != 0);
    const Window::AtomicsAgreement mine = window->state_atomics(request.info);
    // What all processes decide alike: the node's words, then the largest value of all nodes.
    int agreed[] = {spans && !met ? MPI_ERR_OTHER : static_cast<int>(header.error.load(std::memory_order_acquire)),
                    static_cast<int>(header.device.load(std::memory_order_relaxed)),
                    static_cast<int>(header.fence_strategy.load(std::memory_order_relaxed)),
                    window->lacks_lock_words() ? 1 : 0,
                    static_cast<int>(header.checks.load(std::memory_order_relaxed)),
                    static_cast<int>(header.unchecked.load(std::memory_order_relaxed)),
                    mine.refusal,
                    mine.sum,
                    mine.complement,
                    mine.any_op};
    const bool all_agree = !spans || team->largest(request.comm, agreed) == MPI_SUCCESS;
    const auto& [all_error, device, fences, lacking, checks, unchecked, refusal, sum, complement, any_op] = agreed;
    if (fault == Fault::None && !(met && all_agree)) fault = some_died();
    error = all_error != MPI_SUCCESS ? all_error : error_class(fault);
    if (error == MPI_SUCCESS && device != 0) {
        reason = "a process gave device memory as its base";
    } else if (error == MPI_SUCCESS) {
        window->info = read_info(request.info, request.flavor, {});
        window->promised_ops = promises_ops(request.info);
        window->core.checks = checks != 0;
        if (request.flavor == MPI_WIN_FLAVOR_CREATE || request.flavor == MPI_WIN_FLAVOR_DYNAMIC)
            window->info.emplace_back("osc_adopt", window->adoption);
        window->choose_lock_scheme(two_level != 0, lacking != 0);
        window->choose_atomics(request.info, {refusal, sum, complement, any_op});
        window->choose_strategies(request.info, fences);
        window->core.all_check = unchecked == 0;
        window->describe_statistics();
        register_window(window->handle, window.get());
        result = window.release();
        return MPI_SUCCESS;
    } else if (fault == Fault::None) {
        fail(Fault::Other, "another process of the communicator could not create the window");
    }
    if (window->handle != MPI_WIN_NULL) host::real().Win_free(&window->handle);
    destroy(window.release(), met);
    return error;
}

Fault free_window(Window* window, int& host_error) {
    host_error = MPI_SUCCESS;
    if (const Fault fault = epoch::may_free(window->core); fault != Fault::None) return fault;
    window->core.announce_fence(~std::uint64_t{0}, false);  // no operation may wait for a further fence
    const bool met = window->departed || window->core.barrier();
    window->describe_statistics();
    {
        // Attribute delete callbacks may still query the window, so it leaves the table after them.
        const std::lock_guard lock(g_handles);
        MPI_Win handle = window->handle;
        freeing(handle);
        host_error = host::real().Win_free(&handle);
        if (host_error != MPI_SUCCESS) {
            // An attribute callback of this process refused. The window stays until the user frees it again. The other
            // processes do not wait for that, but their first process does not free the control table.
            window->core.controls.header().kept.store(1, std::memory_order_release);
            window->core.announce_fence(window->core.epoch.fences, false);
            depart(*window);
            return Fault::None;
        }
        unregister_window(window->handle);
    }
    destroy(window, met);
    return met ? Fault::None
               : base::fail(Fault::Dead,
                            "a process of the window died, or its connection was lost, before it freed the window");
}

}  // namespace osc
