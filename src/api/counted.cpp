// The counting forms of the entry points. Each calls libosc's own function and counts the call if it succeeded.
#include "api/counted.h"

#include "api/data_fast.h"
#include "api/observed.h"
#include "api/serve.h"
#include "base/assert.h"
#include "stats/record.h"

namespace osc {
namespace {

using stats::DataPath;
using stats::Kind;
using stats::Sync;

// Counts a synchronisation call that has succeeded.
inline void count(MPI_Win win, Sync sync) {
    Window* window = find_front(win);
    if (window == nullptr) window = find_window(win);
    if (window != nullptr && window->stats != nullptr) window->stats->synchronisation(sync, stats::kCallsMade);
}

}  // namespace

void count_operation(MPI_Win win, Kind kind, int rank, Elements target, const stats::OperationTimer& timer) {
    if (rank < 0) return;  // MPI_PROC_NULL
    stats::Counters* counters = nullptr;
    DataPath path = DataPath::Host;
    if (Window* const window = find_window(win); window == nullptr) {
        static stats::Record& host = stats::host_served();
        counters = &host;
    } else if (window->stats != nullptr) {
        counters = window->stats;
        path = window->target(static_cast<std::uint32_t>(rank)).last_path();
    }
    if (counters == nullptr) return;
    counters->operation(kind, path, bytes_of(target));
    timer.count(*counters, kind, path);
}

namespace counted {
namespace general {

// Which function libosc's own is depends on the thread level and on deferred locks for synchronisation: g_own has it.
#define OSC_ENTRY(kind, name, parameters, arguments) OSC_COUNTED_##kind(name, name, parameters, arguments)
#define OSC_LARGE_ENTRY(kind, name, parameters, arguments) OSC_COUNTED_##kind(name##_c, name, parameters, arguments)
#define OSC_COUNTED_Data(name, base, parameters, arguments)                           \
    [[gnu::noinline]] int name parameters {                                           \
        const stats::OperationTimer timer;                                            \
        const int error = entry::name arguments;                                      \
        if (__builtin_expect(error == MPI_SUCCESS, 1))                                \
            count_operation(win, Kind::base, target_rank, OSC_ELEMENTS(name), timer); \
        return error;                                                                 \
    }
#define OSC_COUNTED_Sync(name, base, parameters, arguments)                    \
    int name parameters {                                                      \
        const int error = through(g_own.name) arguments;                       \
        if (__builtin_expect(error == MPI_SUCCESS, 1)) count(win, Sync::name); \
        return error;                                                          \
    }
#define OSC_COUNTED_Window(...)
#define OSC_COUNTED_Query(...)
#define OSC_COUNTED_Comm(...)
#include "api/entries.def"
#undef OSC_COUNTED_Data
#undef OSC_COUNTED_Sync

}  // namespace general

using namespace general;  // behind the fast forms

// The most frequent calls count inside their fast paths, which know the window, the path and the bytes.
#define OSC_COUNTED_FAST(name, buffer, to, from)                                                                    \
    int name(buffer origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,                   \
             MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Win win) {                   \
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
        return general::name(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count,    \
                             target_datatype, win);                                                                 \
    }
OSC_COUNTED_FAST(Put, const void*, target, origin_addr)
OSC_COUNTED_FAST(Get, void*, origin_addr, target)

}  // namespace counted

void count_calls() {
    for (Routes* routes : {&g_mpi, &g_pmpi}) {
#define OSC_ENTRY(kind, name, parameters, arguments) OSC_COUNTED_##kind(name)
#define OSC_COUNTED_Data(name) \
    if (routes->name == as_route(&entry::name)) routes->name = as_route(&counted::name);
#define OSC_COUNTED_Sync OSC_COUNTED_Data
#include "api/entries.def"
    }
}

}  // namespace osc
