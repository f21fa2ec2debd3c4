// The recording forms of the entry points. A reading of the clock takes as long as the shortest calls, so a short put
// or get by load and store reads it once, and a flush behind it with nothing to wait for not at all.
#include "api/traced.h"

#include <algorithm>
#include <mutex>

#include "api/data_fast.h"
#include "api/observed.h"
#include "api/serve.h"
#include "base/launcher.h"
#include "core/epoch.h"
#include "trace/recorder.h"

namespace osc {
namespace {

using trace::Call;
using trace::kNoTarget;
using trace::pack;

Routes g_below;  // a null entry: libosc's own function

std::uint16_t number_of(MPI_Win win) {
    Window* window = find_front(win);
    if (window == nullptr) window = find_window(win);
    return window != nullptr ? window->trace : 0;
}
std::uint16_t number_of(const MPI_Win* win) {
    return win != nullptr ? number_of(*win) : 0;
}
std::uint16_t number_of(std::nullptr_t) {
    return 0;
}

constexpr std::uint8_t failed(int error) {
    return error != MPI_SUCCESS ? trace::kFailed : 0;
}

// Longer ones take long enough for two readings of the clock.
constexpr std::uint64_t kShort = 4096;

// Performs and records a short put or get on memory that this process loads and stores, as libosc's own fast path does.
// False, with nothing done, for any other.
template <Call kCall, class Buffer>
inline bool transfers_at_once(Buffer origin, int count, MPI_Datatype type, int rank, MPI_Aint disp, MPI_Win win) {
    constexpr bool kPut = kCall == Call::Put;
    if ((kPut ? g_below.Put : g_below.Get) != nullptr || origin == nullptr) return false;
    std::uint64_t bytes = 0;
    std::byte* target = nullptr;
    Window* const window = find_front(win);
    if (!OSC_LIKELY(fast::fast_transfer(window, count, type, rank, disp, target, bytes) && bytes <= kShort))
        return false;
    count_served(kPut ? Entry::Put : Entry::Get);
    const std::uint64_t now = base::stamp();
    if constexpr (kPut)
        fast::move_bytes(target, origin, bytes);
    else
        fast::move_bytes(origin, target, bytes);
    constexpr auto kPath = static_cast<std::uint8_t>(stats::DataPath::LoadStore);
    trace::write(now, now, pack(kCall, kPath, window->trace, static_cast<std::uint32_t>(rank)), bytes);
    return true;
}

// Performs and records a flush of a target at which nothing is in flight, as libosc's own fast path does. False, with
// nothing done, for any other.
template <Call kCall>
[[gnu::always_inline]] inline bool flushes_at_once(int rank, MPI_Win win) {
    constexpr bool kLocal = kCall == Call::Win_flush_local;
    Window* const window = find_front(win);
    const auto target = static_cast<std::uint32_t>(rank);
    if (!OSC_LIKELY(window != nullptr && epoch::may_order_only(*window, target))) return false;
    if ((kLocal ? g_below.Win_flush_local : g_below.Win_flush) != nullptr) return false;
    if (!OSC_LIKELY(trace::mark_flushed(kLocal ? trace::kFlushedLocally : trace::kFlushed, window->trace, target))) {
        const std::uint64_t now = base::stamp();
        trace::write(now, now, pack(kCall, 0, window->trace, target), 0);
    }
    count_served(kLocal ? Entry::Win_flush_local : Entry::Win_flush);
    if (__builtin_expect(epoch::order_and_count(window->order), 0)) slow::ordered(*window);
    return true;
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
        trace::open(static_cast<std::uint32_t>(std::max(rank, 0)), static_cast<std::uint32_t>(std::max(processes, 1)));
    });
}

constexpr bool makes_window(Call call) {
    switch (call) {
        case Call::Win_create:
        case Call::Win_create_c:
        case Call::Win_allocate:
        case Call::Win_allocate_c:
        case Call::Win_allocate_shared:
        case Call::Win_allocate_shared_c:
        case Call::Win_create_dynamic:
            return true;
        default:
            return false;
    }
}

// Calls the layer below, or libosc's own function. Which one that is depends on the thread level and on deferred locks
// for two of them: g_own has it.
#define OSC_OWN_Win_lock , through(g_own.Win_lock)
#define OSC_OWN_Win_unlock , through(g_own.Win_unlock)
#define OSC_OWN(name) OSC_CHOOSE(OSC_OWN_##name, entry::name, )
#define OSC_CALL(name, arguments) \
    (OSC_LIKELY(g_below.name == nullptr) ? OSC_OWN(name) arguments : through(g_below.name) arguments)

// The target and the detail of a synchronisation call.
#define OSC_TARGET_Win_lock , rank
#define OSC_TARGET_Win_unlock , rank
#define OSC_TARGET_Win_flush , rank
#define OSC_TARGET_Win_flush_local , rank
#define OSC_TARGET(name) OSC_CHOOSE(OSC_TARGET_##name, kNoTarget, )
#define OSC_DETAIL_Win_lock , lock_type == MPI_LOCK_EXCLUSIVE
#define OSC_DETAIL_Win_fence , (assert& MPI_MODE_NOSUCCEED) != 0
#define OSC_DETAIL_Win_test , error == MPI_SUCCESS&&* flag != 0
#define OSC_DETAIL(name) OSC_CHOOSE(OSC_DETAIL_##name, 0, )
#define OSC_WINDOW_Alloc_mem , nullptr
#define OSC_WINDOW_Free_mem , nullptr
#define OSC_WINDOW(name) OSC_CHOOSE(OSC_WINDOW_##name, win, )

}  // namespace

void record_operation(Call call, std::uint64_t begin, MPI_Win win, int rank, Elements target, int error,
                      std::uint64_t detail) {
    const std::uint64_t end = base::stamp();
    if (rank < 0) return;  // MPI_PROC_NULL
    stats::DataPath path = stats::DataPath::Host;
    Window* const window = find_window(win);
    if (window != nullptr && static_cast<std::uint32_t>(rank) < window->size)
        path = window->targets[static_cast<std::uint32_t>(rank)].last_path();
    const std::uint64_t bytes = error == MPI_SUCCESS ? bytes_of(target) : 0;
    const std::uint16_t number = window != nullptr ? window->trace : 0;
    trace::write(begin, end,
                 pack(call, static_cast<std::uint8_t>(path) | failed(error), number, static_cast<std::uint32_t>(rank)),
                 detail | bytes);
}

namespace traced {

// The general forms. They are not inlined into the fast ones below, which would save registers for them.
namespace general {

#define OSC_ENTRY(kind, name, parameters, arguments) OSC_TRACED_##kind(name, parameters, arguments)
#define OSC_TRACED_Query(name, parameters, arguments)
#define OSC_TRACED_Comm(name, parameters, arguments)

#define OSC_TRACED_Data(name, parameters, arguments)                                      \
    [[gnu::noinline]] int name parameters {                                               \
        if (!trace::recording()) return OSC_CALL(name, arguments);                        \
        const std::uint64_t begin = base::stamp();                                        \
        const int error = OSC_CALL(name, arguments);                                      \
        record_operation(Call::name, begin, win, target_rank, OSC_ELEMENTS(name), error); \
        return error;                                                                     \
    }

#define OSC_TRACED_Sync(name, parameters, arguments)                                                                 \
    [[gnu::noinline]] int name parameters {                                                                          \
        if (!trace::recording()) return OSC_CALL(name, arguments);                                                   \
        const std::uint16_t window = number_of(win);                                                                 \
        const std::uint64_t begin = base::stamp();                                                                   \
        const int error = OSC_CALL(name, arguments);                                                                 \
        const auto detail = static_cast<std::uint8_t>(OSC_DETAIL(name));                                             \
        trace::write(begin, base::stamp(),                                                                           \
                     pack(Call::name, detail | failed(error), window, static_cast<std::uint32_t>(OSC_TARGET(name))), \
                     0);                                                                                             \
        return error;                                                                                                \
    }

#define OSC_TRACED_Window(name, parameters, arguments)                                   \
    int name parameters {                                                                \
        constexpr bool kMakes = makes_window(Call::name);                                \
        if (kMakes) begin_timeline();                                                    \
        if (!trace::recording()) return OSC_CALL(name, arguments);                       \
        std::uint16_t window = kMakes ? 0 : number_of(OSC_WINDOW(name));                 \
        const std::uint64_t begin = base::stamp();                                       \
        const int error = OSC_CALL(name, arguments);                                     \
        const std::uint64_t end = base::stamp();                                         \
        if (kMakes && error == MPI_SUCCESS) window = number_of(OSC_WINDOW(name));        \
        trace::write(begin, end, pack(Call::name, failed(error), window, kNoTarget), 0); \
        return error;                                                                    \
    }

#include "api/entries.def"
#undef OSC_TRACED_Data
#undef OSC_TRACED_Sync
#undef OSC_TRACED_Window

}  // namespace general

using namespace general;  // behind the fast forms

int Put(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
        int target_count, MPI_Datatype target_datatype, MPI_Win win) {
    if (OSC_LIKELY(trace::has_room() && origin_count == target_count && origin_datatype == target_datatype) &&
        OSC_LIKELY(
            transfers_at_once<Call::Put>(origin_addr, origin_count, origin_datatype, target_rank, target_disp, win)))
        return MPI_SUCCESS;
    return general::Put(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count,
                        target_datatype, win);
}

int Get(void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
        int target_count, MPI_Datatype target_datatype, MPI_Win win) {
    if (OSC_LIKELY(trace::has_room() && origin_count == target_count && origin_datatype == target_datatype) &&
        OSC_LIKELY(
            transfers_at_once<Call::Get>(origin_addr, origin_count, origin_datatype, target_rank, target_disp, win)))
        return MPI_SUCCESS;
    return general::Get(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count,
                        target_datatype, win);
}

int Win_flush(int rank, MPI_Win win) {
    if (OSC_LIKELY(trace::has_room() && flushes_at_once<Call::Win_flush>(rank, win))) return MPI_SUCCESS;
    return general::Win_flush(rank, win);
}

int Win_flush_local(int rank, MPI_Win win) {
    if (OSC_LIKELY(trace::has_room() && flushes_at_once<Call::Win_flush_local>(rank, win))) return MPI_SUCCESS;
    return general::Win_flush_local(rank, win);
}

}  // namespace traced

void trace_calls() {
    // PMPI_X leads to libosc or a layer of it, and so does MPI_X where no tool is called first.
#define OSC_ENTRY(kind, name, parameters, arguments) OSC_TRACED_##kind(name, , )
#define OSC_TRACED_Data(name, parameters, arguments)                     \
    if (g_pmpi.name != g_own.name) g_below.name = g_pmpi.name;           \
    if (g_mpi.name == g_pmpi.name) g_mpi.name = as_route(&traced::name); \
    g_pmpi.name = as_route(&traced::name);
#define OSC_TRACED_Sync OSC_TRACED_Data
#define OSC_TRACED_Window OSC_TRACED_Data
#include "api/entries.def"
}

}  // namespace osc
