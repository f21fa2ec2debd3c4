// The observed forms of the entry points, and the events of all calls.
#include "api/observed.h"

#include <algorithm>
#include <mutex>
#include <string_view>

#include "api/routes.h"
#include "base/launcher.h"
#include "host/host.h"
#include "shm/activity.h"
#include "window/registry.h"

namespace osc {

using stats::Kind;
using stats::Sync;
using trace::Call;
using trace::kNoTarget;

namespace {

// Those of the windows that the host serves are one record.
inline stats::Counters* counters_of(const Window* window) {
    if (window != nullptr) return window->core.stats;
    if (!stats::enabled()) return nullptr;
    static stats::Record& host = stats::host_served();
    return &host;
}

// 0 for a datatype that the host does not know.
inline std::uint64_t bytes_of(Elements target) {
    const auto count = static_cast<std::uint64_t>(target.count);
    if (const std::int64_t plain = abi::plain_size(target.type); plain >= 0)
        return static_cast<std::uint64_t>(plain) * count;
    const op::TypeInfo* const type = host::type_info(target.type);
    return type != nullptr ? type->layout.size() * count : 0;
}

}  // namespace

inline std::uint64_t Observed::end() const {
    return timed_ || base::waited_ns() != waited_ ? base::stamp() : began_;
}

// Where statistics are on, stamps are ns.
inline void Observed::count_time(stats::Counters& counters, std::size_t first, std::uint64_t end) const {
    const std::int64_t waited = base::waited_ns() - waited_;
    if (timed_ || waited != 0) counters.took(first, timed_ ? static_cast<std::int64_t>(end - began_) : waited, waited);
}

inline void Observed::record(std::uint64_t end, Call call, unsigned detail, int error, std::uint16_t window,
                             std::uint32_t number, std::uint64_t value) const {
    if (!recorded_) return;
    if (error != MPI_SUCCESS) detail |= trace::kFailed;
    trace::write(began_, end, trace::pack(call, static_cast<std::uint8_t>(detail), window, number), value);
}

void Observed::operation(Call call, Kind kind, const Window* window, int rank, Elements target, int error,
                         std::uint64_t more) const {
    const std::uint64_t ended = end();
    if (rank < 0) return;  // MPI_PROC_NULL
    const auto number = static_cast<std::uint32_t>(rank);
    stats::DataPath path = stats::DataPath::Host;
    if (window != nullptr && number < window->core.size) path = window->core.targets[number].last_path();
    const std::uint64_t bytes = error == MPI_SUCCESS ? bytes_of(target) : 0;
    record(ended, call, static_cast<unsigned>(path), error, window != nullptr ? window->core.trace : 0, number,
           more | bytes);
    stats::Counters* const counters = counters_of(window);
    if (error != MPI_SUCCESS || counters == nullptr) return;
    counters->operation(kind, path, bytes);
    count_time(*counters, index_of(kind, path, stats::kTimedOperations), ended);
}

void Observed::synchronisation(Call call, Sync sync, const Window* window, std::uint32_t number, int error,
                               bool detail) const {
    const std::uint64_t ended = end();
    record(ended, call, detail, error, window != nullptr ? window->core.trace : 0, number, 0);
    if (error != MPI_SUCCESS || window == nullptr || window->core.stats == nullptr) return;
    window->core.stats->synchronisation(sync, stats::kCallsMade);
    count_time(*window->core.stats, index_of(sync, stats::kTimedCalls), ended);
}

void Observed::other(Call call, std::uint16_t window, int error) const {
    record(end(), call, 0, error, window, kNoTarget, 0);
}

namespace {

constexpr std::uint64_t kShort = 4096;  // bytes: a longer copy takes as long as two readings of the clock

// What a thread that waits in the call of a window waits for, and the peer if it is a single one.
void note_wait(std::uint64_t, std::int64_t ns) {
    const shm::WaitScope* const scope = shm::WaitScope::innermost();
    if (scope == nullptr || scope->window() == 0) return;
    const auto add = [&](stats::Wait what, std::uint32_t peer) { stats::add_wait(scope->window(), what, peer, ns); };
    switch (scope->kind()) {
        case shm::WaitKind::Lock:
            return add(stats::Wait::Lock, scope->target());
        case shm::WaitKind::Post:
            return add(stats::Wait::Post, scope->target());
        case shm::WaitKind::TargetFence:
            return add(stats::Wait::Fence, scope->target());
        case shm::WaitKind::Operations:
            static_assert(shm::kEveryTarget == stats::kNoPeer);
            return add(stats::Wait::Operations, scope->target());
        case shm::WaitKind::Completes:
            return add(stats::Wait::Completes, stats::kNoPeer);
        case shm::WaitKind::Barrier:
        case shm::WaitKind::Closes:
            return add(stats::Wait::All, stats::kNoPeer);
        case shm::WaitKind::Notification:
            return add(stats::Wait::Notification, stats::kNoPeer);
        default:
            return add(stats::Wait::Other, stats::kNoPeer);
    }
}

// Whether to time an operation: not a short put or get that its fast path performs.
inline bool is_timed(Kind kind, const Window* window, int rank, Elements target) {
    if ((kind != Kind::Put && kind != Kind::Get) || window == nullptr) return true;
    const auto number = static_cast<std::uint32_t>(rank);
    return number >= window->core.size ||
           window->core.targets[number].fast_limit.load(std::memory_order_relaxed) == 0 ||
           abi::plain_size(target.type) < 0 || bytes_of(target) > kShort;
}

// Whether to time a synchronisation call: not at one target of the node with nothing in flight.
inline bool is_timed(const Window* window, std::uint32_t target) {
    return window == nullptr || target >= window->core.size || !window->core.is_local(target) ||
           window->core.incomplete.load(std::memory_order_relaxed) != 0 || !window->core.allows_fast_paths();
}

inline const Window* window_of(MPI_Win win) {
    const Window* const window = find_front(win);
    return window != nullptr ? window : find_window(win);
}

std::uint16_t number_of(const MPI_Win* win) {
    const Window* const window = win != nullptr ? window_of(*win) : nullptr;
    return window != nullptr ? window->core.trace : 0;
}
[[maybe_unused]] std::uint16_t number_of(MPI_Win win) {
    return number_of(&win);
}
// Of a call without a window, on a host whose handles are pointers.
[[maybe_unused]] std::uint16_t number_of(std::nullptr_t) {
    return 0;
}

// Begins to record, once, at the creation of the first window.
void begin_timeline() {
    static std::once_flag once;
    std::call_once(once, [] {
        int initialized = 0;
        int rank = base::launcher::rank();
        int processes = base::launcher::size();
        host::real().Initialized(&initialized);
        if (initialized != 0) {
            host::real().Comm_rank(MPI_COMM_WORLD, &rank);
            host::real().Comm_size(MPI_COMM_WORLD, &processes);
        }
        trace::open(static_cast<std::uint32_t>(std::max(rank, 0)), static_cast<std::uint32_t>(std::max(processes, 1)),
                    !stats::enabled());
    });
}

constexpr bool makes_window(std::string_view name) {
    return name.starts_with("Win_create") || name.starts_with("Win_allocate");
}

// What differs from most entry points of a kind.
#define OSC_ELEMENTS(name) OSC_CHOOSE(OSC_ELEMENTS_##name, (Elements{target_count, target_datatype}), )
#define OSC_ELEMENTS_Fetch_and_op , (Elements{1, datatype})
#define OSC_ELEMENTS_Compare_and_swap , (Elements{1, datatype})
#define OSC_TARGET(name) OSC_CHOOSE(OSC_TARGET_##name, kNoTarget, )
#define OSC_TARGET_Win_lock , static_cast<std::uint32_t>(rank)
#define OSC_TARGET_Win_unlock , static_cast<std::uint32_t>(rank)
#define OSC_TARGET_Win_flush , static_cast<std::uint32_t>(rank)
#define OSC_TARGET_Win_flush_local , static_cast<std::uint32_t>(rank)
#define OSC_DETAIL(name) OSC_CHOOSE(OSC_DETAIL_##name, false, )
#define OSC_DETAIL_Win_lock , lock_type == MPI_LOCK_EXCLUSIVE
#define OSC_DETAIL_Win_fence , (assert& MPI_MODE_NOSUCCEED) != 0
#define OSC_DETAIL_Win_test , error == MPI_SUCCESS&&* flag != 0
#define OSC_WINDOW(name) OSC_CHOOSE(OSC_WINDOW_##name, win, )
#define OSC_WINDOW_Alloc_mem , nullptr
#define OSC_WINDOW_Free_mem , nullptr

}  // namespace

// Calls below go through g_own: which function libosc's own is depends on the thread level and on deferred locks.
namespace observed {

#define OSC_ENTRY(kind, name, parameters, arguments) OSC_OBSERVED_##kind(name, name, parameters, arguments)
#define OSC_LARGE_ENTRY(kind, name, parameters, arguments) OSC_OBSERVED_##kind(name##_c, name, parameters, arguments)
#define OSC_OBSERVED_Data(name, base, parameters, arguments)                        \
    int name parameters {                                                           \
        const Window* const window = window_of(win);                                \
        const Elements target OSC_ELEMENTS(name);                                   \
        const Observed call(is_timed(Kind::base, window, target_rank, target));     \
        const int error = through(g_own.name) arguments;                            \
        call.operation(Call::name, Kind::base, window, target_rank, target, error); \
        return error;                                                               \
    }
#define OSC_OBSERVED_Sync(name, base, parameters, arguments)                                             \
    int name parameters {                                                                                \
        const Window* const window = window_of(win);                                                     \
        const Observed call(is_timed(window, OSC_TARGET(name)));                                         \
        const int error = through(g_own.name) arguments;                                                 \
        call.synchronisation(Call::name, Sync::name, window, OSC_TARGET(name), error, OSC_DETAIL(name)); \
        return error;                                                                                    \
    }
#define OSC_OBSERVED_Window(name, base, parameters, arguments)                    \
    int name parameters {                                                         \
        constexpr bool kMakes = makes_window(#name);                              \
        if (kMakes && trace::enabled()) begin_timeline();                         \
        std::uint16_t window = kMakes ? 0 : number_of(OSC_WINDOW(name));          \
        const Observed call(true);                                                \
        const int error = through(g_own.name) arguments;                          \
        if (kMakes && error == MPI_SUCCESS) window = number_of(OSC_WINDOW(name)); \
        call.other(Call::name, window, error);                                    \
        return error;                                                             \
    }
#define OSC_OBSERVED_Query(...)
#define OSC_OBSERVED_Comm(...)
#include "api/entries.def"

}  // namespace observed

void observe_calls() {
    // PMPI_X leads to libosc, and so does MPI_X where no tool is called first.
#define OSC_ENTRY(kind, name, parameters, arguments) OSC_FRONT_##kind(name)
#define OSC_FRONT_Data(name)                                               \
    if (g_mpi.name == g_pmpi.name) g_mpi.name = as_route(&observed::name); \
    g_pmpi.name = as_route(&observed::name);
#define OSC_FRONT_Sync OSC_FRONT_Data
#define OSC_FRONT_Window OSC_FRONT_Data
#define OSC_FRONT_Query(...)
#define OSC_FRONT_Comm(...)
#include "api/entries.def"
    if (stats::enabled()) base::observe_waits(&note_wait);
}

}  // namespace osc
