// Creation and free of windows. On a node both use shared memory only. Creation: the first process makes the control
// table, and the team passes two barriers; then the window's processes pass those of the table. Free: the window passes
// one barrier and counts departures.
#include "window/create.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/warn.h"
#include "core/epoch.h"
#include "host/datatype.h"
#include "host/host.h"
#include "window/checker.h"
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

// A barrier of the node's processes; false if a process of the team has died.
bool pass_barrier(shm::Barrier& barrier, Team& team) {
    return barrier.arrive_and_wait(team.local_size(), [&] { return team.dead_in_collective() >= 0; });
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
        if (block.memory == shm::Memory::Private) adopt_memory(window, request, block);
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
    pass_barrier(window.team.shared().barrier, window.team);
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

// The host may reissue a freed handle at once, to another thread. So no handle may be made between the host's free of a
// window and its removal from libosc's table. Recursive, because attribute callbacks may create and free windows.
std::recursive_mutex g_handles;

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

// One collective creation. After the first fault of this process its later steps do nothing, but it takes part in every
// agreement, so that all processes return the same.
class Creation {
  public:
    Creation(const Request& request, Team& team)
        : request_(request), team_(team), spans_(team.spans_nodes()), number_(team.next_creation()) {}
    ~Creation() {
        if (!has_made_) team_.release();
    }
    Creation(const Creation&) = delete;
    Creation& operator=(const Creation&) = delete;

    int run(Window*& result, const char*& reason) {
        step([&] { return make_window(); });
        open_controls();
        if (const int error = agree_on_wishes(); error != MPI_SUCCESS) return error;
        if (wishes_.no_controls != 0) return leave_without_controls();
        if (wishes_.device != 0) {
            reason = "a process gave device memory as its base";
            return abandon(MPI_SUCCESS);
        }
        step([&] { return prepare(*window_, request_, window_->core.mine()); });
        step([&] { return make_handle(); });
        step([&] { return describe_window(); });
        publish_fault();
        window_->offer_agent();
        met_ = pass_barrier(header().barrier, team_);
        place_shared_memory();
        start_agents();
        if (spans_) step([&] { window_->serve_network(wishes_.two_level != 0); });
        if (const int error = agree_on_outcome(); error != MPI_SUCCESS) return abandon(error);
        // The fast paths would load and store in a buffer wherever it lies.
        if (!look_for_devices()) serve_fast_paths(window_->handle, window_.get());
        // A record or a line that is missing is no fault of the window.
        static_cast<void>(base::attempt([&] {
            window_->say_strategies();
            window_->describe_statistics();
        }));
        result = window_.release();
        return MPI_SUCCESS;
    }

  private:
    // Before a process allocates memory of the window: the largest of all processes' values.
    struct Wishes {
        int no_controls;  // 1: a node has no control table
        int two_level;
        int fences;  // the number of the fence strategy
        int checks;
        int unchecked;
        int device;
    };
    // When all has been made: the largest of all processes' values.
    struct Outcome {
        int error;  // an MPI error class
        int lacks_lock_words;
        Window::AtomicsAgreement atomics;
    };

    template <class F>
    void step(F&& what) {
        if (fault_ == Fault::None) fault_ = base::attempt(what);
    }

    // What this process makes and reads alone.
    Fault make_window() {
        window_ = std::make_unique<Window>(team_);
        has_made_ = true;
        if (window_->core.targets == nullptr) return fail(Fault::NoMem, "no memory for the window's targets");
        window_->core.id = team_.window_id(number_);
        window_->flavor = request_.flavor;
        window_->core.controls.local_ranks = team_.local_ranks();
        window_->core.controls.stride = shm::ControlTable::stride_for(window_->core.size);
        window_->make_ways();
        window_->core.threaded = host::threads();
        window_->core.shared_flavour = request_.flavor == MPI_WIN_FLAVOR_SHARED;
        window_->core.pointers_given = window_->core.shared_flavour;
        window_->open_statistics();
        window_->promised_ops = promises_ops(request_.info);
        atomics_wish_ = wanted_atomics(request_.info);
        window_->info = read_info(request_.info, request_.flavor, {});
        const bool is_created = request_.flavor == MPI_WIN_FLAVOR_CREATE;
        if (is_created || request_.flavor == MPI_WIN_FLAVOR_DYNAMIC) {
            window_->adoption = wanted_adoption(request_.info);
            window_->info.emplace_back("osc_adopt", window_->adoption);
        }
        const auto bytes = static_cast<std::size_t>(request_.size);
        const bool is_private =
            is_created && bytes > 0 && shm::Arena::mine().offset_of(request_.base, bytes) == shm::kNoOffset;
        wishes_ = {.no_controls = 0,
                   .two_level = wants_two_level(request_.info) ? 1 : 0,
                   .fences = wanted_strategy(strategy::SyncKind::Fence, request_.info),
                   .checks = g_checker != nullptr ? 1 : 0,
                   .unchecked = g_checker == nullptr ? 1 : 0,
                   .device = is_private && in_device_memory(request_.base) ? 1 : 0};
        return Fault::None;
    }

    // The window's control table: the node's first process makes it; all processes map it and state their wishes in it,
    // or none uses it. The second barrier also keeps the first process from publishing the next table before all
    // processes have read this one.
    void open_controls() {
        TeamShared& shared = team_.shared();
        const std::size_t bytes = shm::ControlTable::bytes_for(team_.local_size(), team_.size());
        shm::ArenaBlock piece;
        if (team_.me() == team_.leader()) {
            if (fault_ == Fault::None) piece = shm::Arena::mine().allocate(bytes, 64, true);
            if (piece)
                shm::construct({piece.address, window_->core.controls.stride, window_->core.controls.local_ranks},
                               team_.size());
            shared.controls.store(piece ? piece.offset : 0, std::memory_order_release);
        }
        met_ = pass_barrier(shared.barrier, team_);
        const std::uint64_t offset = shared.controls.load(std::memory_order_acquire);
        if (met_ && offset != 0)
            step([&] { window_->core.controls.address = window_->map(team_.leader(), offset, bytes); });
        const bool mapped = window_ != nullptr && window_->core.controls.address != nullptr;
        if (mapped) {
            raise_to(header().fence_strategy, static_cast<std::uint32_t>(wishes_.fences));
            raise_to(wishes_.checks != 0 ? header().checks : header().unchecked, 1);
            raise_to(header().device, static_cast<std::uint32_t>(wishes_.device));
        } else {
            shared.unmapped.store(number_, std::memory_order_release);
        }
        met_ = met_ && pass_barrier(shared.barrier, team_);
        if (met_ && shared.unmapped.load(std::memory_order_acquire) != number_) return;
        if (window_ != nullptr) window_->core.controls.address = nullptr;
        if (piece && met_) shm::Arena::mine().release(piece.address);
        wishes_.no_controls = 1;
    }

    // The node's words, then the largest value of all nodes. An error only if a process has died.
    int agree_on_wishes() {
        if (wishes_.no_controls == 0) {
            const auto word = [](const auto& from) { return static_cast<int>(from.load(std::memory_order_relaxed)); };
            wishes_.fences = word(header().fence_strategy);
            wishes_.checks = word(header().checks);
            wishes_.unchecked = word(header().unchecked);
            wishes_.device = word(header().device);
        }
        if (!spans_) return MPI_SUCCESS;
        const int error = team_.largest(request_.comm, wishes_);
        if (error != MPI_SUCCESS) some_died();
        return error;
    }

    int leave_without_controls() {
        if (const int dead = team_.dead_in_collective(); dead >= 0)
            return error_class(fail(Fault::Dead, "rank %d of the communicator died, or its connection is lost", dead));
        if (!met_) return error_class(some_died());
        // Another node has no table. No process of this one uses its own any more.
        std::byte* const controls = window_ != nullptr ? window_->core.controls.address : nullptr;
        const bool first = team_.me() == team_.leader();
        window_.reset();
        if (first && controls != nullptr) shm::Arena::mine().release(controls);
        return error_class(
            fail(Fault::NoMem, "no memory, or no descriptor to map it, for the window's control data on some process"));
    }

    Fault make_handle() {
        const std::lock_guard lock(g_handles);
        if (abi::make_window(host::self_comm(), &window_->handle) == MPI_SUCCESS) return Fault::None;
        window_->handle = MPI_WIN_NULL;
        const char* const text =
            "the host MPI has no window or communicator left: live windows and communicators share about 2,000 of its "
            "context ids; free some with MPI_Win_free or MPI_Comm_free, or create one larger window";
        // The error class does not say it, and no line follows where errors return.
        if (!host::comm_errors_are_fatal(request_.comm)) base::warn_for_group("%s", text);
        return fail(Fault::Other, "%s", text);
    }

    // All that needs memory of this process: behind the last agreement nothing fails.
    Fault describe_window() {
        window_->core.checks = wishes_.checks != 0;
        window_->core.all_check = wishes_.unchecked == 0;
        window_->choose_strategies(request_.info, wishes_.fences);
        register_window(window_->handle, window_.get());
        if (host::init_types(host::self_comm()) != MPI_SUCCESS)
            return fail(Fault::NoMem, "no memory to describe the predefined datatypes");
        return Fault::None;
    }

    shm::ControlTableHeader& header() { return window_->core.controls.header(); }

    void publish_fault() { raise_to(header().error, static_cast<std::uint32_t>(error_class(fault_))); }

    // After the barrier all processes read the same words, so all take the same branch, here and in start_agents.
    void place_shared_memory() {
        if (!met_ || request_.flavor != MPI_WIN_FLAVOR_SHARED) return;
        if (header().error.load(std::memory_order_acquire) == 0) {
            step([&] {
                return header().contiguous.load(std::memory_order_relaxed) != 0
                           ? lay_out_segment(*window_, request_)
                           : allocate_own(*window_, request_, window_->core.mine());
            });
            publish_fault();
        }
        met_ = pass_barrier(header().barrier, team_);
    }

    void start_agents() {
        if (!met_ || header().agents.load(std::memory_order_acquire) != (shm::kUnserved | shm::kUnreachable)) return;
        step([&] { return window_->serve_by_agent(); });
        publish_fault();
        met_ = pass_barrier(header().barrier, team_);
    }

    // The node's word, then the largest value of all nodes.
    int agree_on_outcome() {
        Outcome outcome{};
        step([&] { outcome.atomics = window_->state_atomics(atomics_wish_); });
        outcome.error = spans_ && !met_ ? MPI_ERR_OTHER
                                        : std::max(error_class(fault_),
                                                   static_cast<int>(header().error.load(std::memory_order_acquire)));
        outcome.lacks_lock_words = window_->lacks_lock_words() ? 1 : 0;
        bool all_agree = !spans_ || team_.largest(request_.comm, outcome) == MPI_SUCCESS;
        if (all_agree && outcome.error == MPI_SUCCESS) {
            step([&] {
                window_->choose_lock_scheme(wishes_.two_level != 0, outcome.lacks_lock_words != 0);
                window_->choose_atomics(atomics_wish_, outcome.atomics);
            });
            // Two-level locks and provider atomics take memory.
            if (spans_ && (wishes_.two_level != 0 || outcome.atomics.refusal == 0)) {
                outcome.error = error_class(fault_);
                all_agree = team_.largest(request_.comm, outcome.error) == MPI_SUCCESS;
            }
        }
        if (fault_ == Fault::None && !(met_ && all_agree)) fault_ = some_died();
        if (fault_ == Fault::None && outcome.error != MPI_SUCCESS)
            fail(Fault::Other, "another process of the communicator could not create the window");
        return outcome.error != MPI_SUCCESS ? outcome.error : error_class(fault_);
    }

    int abandon(int error) {
        if (window_->handle != MPI_WIN_NULL) {
            unregister_window(window_->handle);
            host::real().Win_free(&window_->handle);
        }
        destroy(window_.release(), met_);
        return error;
    }

    const Request& request_;
    Team& team_;
    const bool spans_;
    const std::uint64_t number_;
    Fault fault_ = Fault::None;
    bool met_ = false;
    bool has_made_ = false;  // the window has the reference to the team
    Wishes wishes_{};
    AtomicsWish atomics_wish_ = AtomicsWish::Messages;
    std::unique_ptr<Window> window_;
};

}  // namespace

int error_class(Fault fault) {
    constexpr int kClasses[] = {
        MPI_SUCCESS,
#define OSC_FAULT_KIND(id, error) MPI_ERR_##error,
#include "base/faults.def"
    };
    return kClasses[static_cast<std::size_t>(fault)];
}

int create_window(Request request, Window*& result, const char*& reason) {
    result = nullptr;
    Team* team = nullptr;
    bool atomics = false;
    if (const Fault fault = base::attempt(
            [&] { atomics = wants_two_level(request.info) || wanted_atomics(request.info) == AtomicsWish::Provider; });
        request.fault == Fault::None)
        request.fault = fault;
    if (const int error = Team::of(request.comm, request.flavor == MPI_WIN_FLAVOR_SHARED, atomics, team, reason);
        error != MPI_SUCCESS) {
        fail(Fault::Other, "%s", reason);
        return error;
    }
    reason = team->not_served();
    const bool unshareable = team->spans_nodes() && request.flavor == MPI_WIN_FLAVOR_SHARED;
    if (reason != nullptr || unshareable) {
        team->release();
        if (!unshareable) return MPI_SUCCESS;
        return error_class(
            fail(Fault::Shared, "the processes of the communicator cannot share memory: they are not all on one node"));
    }
    const shm::WaitScope waits(shm::WaitKind::Creation, 0, team->me());
    return Creation(request, *team).run(result, reason);
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
