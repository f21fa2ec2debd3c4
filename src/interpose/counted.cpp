// The counting forms of the entry points. Each calls libosc's own function and counts the call if it succeeded.
#include "interpose/counted.h"

#include "base/assert.h"
#include "interpose/data_fast.h"
#include "interpose/observed.h"
#include "interpose/serve.h"
#include "stats/record.h"

namespace osc {
namespace {

using stats::DataPath;
using stats::Kind;
using stats::Sync;

// Counts an operation that has succeeded.
void count(MPI_Win win, Kind kind, int rank, MPI_Count count, MPI_Datatype type, const stats::OperationTimer& timer) {
    if (rank < 0) return;  // MPI_PROC_NULL
    stats::Counters* counters = nullptr;
    DataPath path = DataPath::Host;
    if (Window* const window = find_window(win); window == nullptr) {
        static stats::Record& host = stats::host_served();
        counters = &host;
    } else if (window->stats != nullptr) {
        counters = window->stats;
        path = window->peer(static_cast<std::uint32_t>(rank)).last_path();
    }
    if (counters == nullptr) return;
    counters->operation(kind, path, bytes_of(count, type));
    timer.count(*counters, kind, path);
}

// Counts a synchronisation call that has succeeded.
inline void count(MPI_Win win, Sync sync) {
    Window* window = find_front(win);
    if (window == nullptr) window = find_window(win);
    if (window != nullptr && window->stats != nullptr) window->stats->synchronisation(sync, stats::kCallsMade);
}

// `counting` is the name of the counting form of `name`.
#define OSC_COUNTED(counting, name, kind, parameters, arguments, elements, type)                                   \
    int counting parameters {                                                                                      \
        const stats::OperationTimer timer;                                                                         \
        const int error = entry::name arguments;                                                                   \
        if (__builtin_expect(error == MPI_SUCCESS, 1)) count(win, Kind::kind, target_rank, elements, type, timer); \
        return error;                                                                                              \
    }

#define OSC_TAKES_TO(C) int target_rank, MPI_Aint target_disp, C target_count, MPI_Datatype target_datatype
#define OSC_GIVES_TO target_rank, target_disp, target_count, target_datatype
#define OSC_TAKES_PUT(C) const void *origin_addr, C origin_count, MPI_Datatype origin_datatype, OSC_TAKES_TO(C)
#define OSC_TAKES_GET(C) void *origin_addr, C origin_count, MPI_Datatype origin_datatype, OSC_TAKES_TO(C)
#define OSC_GIVES_PUT origin_addr, origin_count, origin_datatype, OSC_GIVES_TO
#define OSC_TAKES_FETCH(C)                                                                                    \
    const void *origin_addr, C origin_count, MPI_Datatype origin_datatype, void *result_addr, C result_count, \
        MPI_Datatype result_datatype, OSC_TAKES_TO(C), MPI_Op op
#define OSC_GIVES_FETCH \
    origin_addr, origin_count, origin_datatype, result_addr, result_count, result_datatype, OSC_GIVES_TO, op
#define OSC_COUNTED_TO(name, kind, parameters, arguments) \
    OSC_COUNTED(name, name, kind, parameters, arguments, target_count, target_datatype)

// Both forms of a function: with int and with MPI_Count.
#define OSC_COUNTED_TRANSFERS(suffix, C)                                                    \
    OSC_COUNTED_TO(Put##suffix, Put, (OSC_TAKES_PUT(C), MPI_Win win), (OSC_GIVES_PUT, win)) \
    OSC_COUNTED_TO(Get##suffix, Get, (OSC_TAKES_GET(C), MPI_Win win), (OSC_GIVES_PUT, win))
#define OSC_COUNTED_UPDATES(suffix, C)                                                                                \
    OSC_COUNTED_TO(Accumulate##suffix, Accumulate, (OSC_TAKES_PUT(C), MPI_Op op, MPI_Win win),                        \
                   (OSC_GIVES_PUT, op, win))                                                                          \
    OSC_COUNTED_TO(Get_accumulate##suffix, GetAccumulate, (OSC_TAKES_FETCH(C), MPI_Win win), (OSC_GIVES_FETCH, win))  \
    OSC_COUNTED_TO(Rput##suffix, Rput, (OSC_TAKES_PUT(C), MPI_Win win, MPI_Request * request),                        \
                   (OSC_GIVES_PUT, win, request))                                                                     \
    OSC_COUNTED_TO(Rget##suffix, Rget, (OSC_TAKES_GET(C), MPI_Win win, MPI_Request * request),                        \
                   (OSC_GIVES_PUT, win, request))                                                                     \
    OSC_COUNTED_TO(Raccumulate##suffix, Raccumulate,                                                                  \
                   (OSC_TAKES_PUT(C), MPI_Op op, MPI_Win win, MPI_Request * request),                                 \
                   (OSC_GIVES_PUT, op, win, request))                                                                 \
    OSC_COUNTED_TO(Rget_accumulate##suffix, RgetAccumulate, (OSC_TAKES_FETCH(C), MPI_Win win, MPI_Request * request), \
                   (OSC_GIVES_FETCH, win, request))

[[gnu::noinline]] OSC_COUNTED(general_Put, Put, Put, (OSC_TAKES_PUT(int), MPI_Win win), (OSC_GIVES_PUT, win),
                              target_count, target_datatype)
    [[gnu::noinline]] OSC_COUNTED(general_Get, Get, Get, (OSC_TAKES_GET(int), MPI_Win win), (OSC_GIVES_PUT, win),
                                  target_count, target_datatype)

}  // namespace

void count_operation(MPI_Win win, Kind kind, int rank, MPI_Count elements, MPI_Datatype type,
                     const stats::OperationTimer& timer) {
    count(win, kind, rank, elements, type, timer);
}

namespace counted {

OSC_COUNTED_TRANSFERS(_c, MPI_Count)
OSC_COUNTED_UPDATES(, int)
OSC_COUNTED_UPDATES(_c, MPI_Count)

// The most frequent calls count inside their fast paths, which know the window, the path and the bytes.
#define OSC_COUNTED_FAST(name, parameters, to, from)                                                                \
    int name parameters {                                                                                           \
        std::uint64_t bytes = 0;                                                                                    \
        std::byte* target = nullptr;                                                                                \
        Window* const window = find_front(win);                                                                     \
        if (OSC_LIKELY(origin_count == target_count && origin_datatype == target_datatype) &&                       \
            OSC_LIKELY(origin_addr != nullptr) &&                                                                   \
            OSC_LIKELY(fast::fast_transfer(window, origin_count, origin_datatype, target_rank, target_disp, target, \
                                           bytes))) {                                                               \
            count_served(Entry::name);                                                                              \
            fast::move_bytes(to, from, bytes);                                                                      \
            OSC_ASSERT(window->stats != nullptr);                                                                   \
            window->stats->operation(Kind::name, DataPath::LoadStore, bytes);                                       \
            return MPI_SUCCESS;                                                                                     \
        }                                                                                                           \
        return general_##name(OSC_GIVES_PUT, win);                                                                  \
    }
OSC_COUNTED_FAST(Put, (OSC_TAKES_PUT(int), MPI_Win win), target, origin_addr)
OSC_COUNTED_FAST(Get, (OSC_TAKES_GET(int), MPI_Win win), origin_addr, target)

OSC_COUNTED(Fetch_and_op, Fetch_and_op, FetchAndOp,
            (const void* origin_addr, void* result_addr, MPI_Datatype datatype, int target_rank, MPI_Aint target_disp,
             MPI_Op op, MPI_Win win),
            (origin_addr, result_addr, datatype, target_rank, target_disp, op, win), 1, datatype)
OSC_COUNTED(Compare_and_swap, Compare_and_swap, CompareAndSwap,
            (const void* origin_addr, const void* compare_addr, void* result_addr, MPI_Datatype datatype,
             int target_rank, MPI_Aint target_disp, MPI_Win win),
            (origin_addr, compare_addr, result_addr, datatype, target_rank, target_disp, win), 1, datatype)

// Which function libosc's own is depends on the thread level and on deferred locks: g_own has it.
#define OSC_ENTRY(kind, name, parameters, arguments) OSC_COUNTED_##kind(name, parameters, arguments)
#define OSC_COUNTED_Sync(name, parameters, arguments)                          \
    int name parameters {                                                      \
        const int error = through(g_own.name) arguments;                       \
        if (__builtin_expect(error == MPI_SUCCESS, 1)) count(win, Sync::name); \
        return error;                                                          \
    }
#define OSC_COUNTED_Data(name, parameters, arguments)
#define OSC_COUNTED_Window(name, parameters, arguments)
#define OSC_COUNTED_Query(name, parameters, arguments)
#define OSC_COUNTED_Comm(name, parameters, arguments)
#include "interpose/entries.def"
#undef OSC_COUNTED_Data
#undef OSC_COUNTED_Sync
#undef OSC_ENTRY

}  // namespace counted

void count_calls() {
    for (Routes* routes : {&g_mpi, &g_pmpi}) {
#define OSC_ENTRY(kind, name, parameters, arguments) OSC_COUNTED_##kind(name, , )
#define OSC_COUNTED_Data(name, parameters, arguments) \
    if (routes->name == as_route(&entry::name)) routes->name = as_route(&counted::name);
#define OSC_COUNTED_Sync OSC_COUNTED_Data
#include "interpose/entries.def"
#undef OSC_ENTRY
    }
}

}  // namespace osc
