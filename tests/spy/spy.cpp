// libspy, loaded after libosc, interposes the host MPI's one-sided functions, counts the data and synchronisation calls
// that the host performs, and passes them on. Tests check with spy_count() that there were none. It also counts the
// calls by which libosc drives the host, and calls from other threads than the first.
#include <dlfcn.h>
#include <mpi.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

namespace {

struct Counter {
    const char* name;
    std::atomic<unsigned long long> calls{0};
};

void* host_function(const char* name) {
    return dlsym(RTLD_NEXT, name);
}

}  // namespace

// Parameter lists and their names, shared by the int and MPI_Count forms.
#define SIDES(Origin, Int) Origin o, Int oc, MPI_Datatype ot, int rank, MPI_Aint disp, Int tc, MPI_Datatype tt
#define SIDES_ARGS o, oc, ot, rank, disp, tc, tt
#define FETCHING(Int)                                                                                          \
    const void *o, Int oc, MPI_Datatype ot, void *r, Int rc, MPI_Datatype rt, int rank, MPI_Aint disp, Int tc, \
        MPI_Datatype tt, MPI_Op op, MPI_Win win
#define FETCHING_ARGS o, oc, ot, r, rc, rt, rank, disp, tc, tt, op, win

// SPY(name, parameters, arguments), one line for each function.
#define SPY_DATA(suffix, Int)                                                                         \
    SPY(Put##suffix, (SIDES(const void*, Int), MPI_Win win), (SIDES_ARGS, win))                       \
    SPY(Get##suffix, (SIDES(void*, Int), MPI_Win win), (SIDES_ARGS, win))                             \
    SPY(Accumulate##suffix, (SIDES(const void*, Int), MPI_Op op, MPI_Win win), (SIDES_ARGS, op, win)) \
    SPY(Get_accumulate##suffix, (FETCHING(Int)), (FETCHING_ARGS))                                     \
    SPY(Rput##suffix, (SIDES(const void*, Int), MPI_Win win, MPI_Request * q), (SIDES_ARGS, win, q))  \
    SPY(Rget##suffix, (SIDES(void*, Int), MPI_Win win, MPI_Request * q), (SIDES_ARGS, win, q))        \
    SPY(Raccumulate##suffix, (SIDES(const void*, Int), MPI_Op op, MPI_Win win, MPI_Request * q),      \
        (SIDES_ARGS, op, win, q))                                                                     \
    SPY(Rget_accumulate##suffix, (FETCHING(Int), MPI_Request * q), (FETCHING_ARGS, q))
#define SPY_TABLE                                                                                                \
    SPY_DATA(, int)                                                                                              \
    SPY_DATA(_c, MPI_Count)                                                                                      \
    SPY(Fetch_and_op, (const void* o, void* r, MPI_Datatype t, int rank, MPI_Aint disp, MPI_Op op, MPI_Win win), \
        (o, r, t, rank, disp, op, win))                                                                          \
    SPY(Compare_and_swap,                                                                                        \
        (const void* o, const void* c, void* r, MPI_Datatype t, int rank, MPI_Aint disp, MPI_Win win),           \
        (o, c, r, t, rank, disp, win))                                                                           \
    SPY(Win_fence, (int assertion, MPI_Win win), (assertion, win))                                               \
    SPY(Win_start, (MPI_Group group, int assertion, MPI_Win win), (group, assertion, win))                       \
    SPY(Win_post, (MPI_Group group, int assertion, MPI_Win win), (group, assertion, win))                        \
    SPY(Win_complete, (MPI_Win win), (win))                                                                      \
    SPY(Win_wait, (MPI_Win win), (win))                                                                          \
    SPY(Win_test, (MPI_Win win, int* flag), (win, flag))                                                         \
    SPY(Win_lock, (int type, int rank, int assertion, MPI_Win win), (type, rank, assertion, win))                \
    SPY(Win_unlock, (int rank, MPI_Win win), (rank, win))                                                        \
    SPY(Win_lock_all, (int assertion, MPI_Win win), (assertion, win))                                            \
    SPY(Win_unlock_all, (MPI_Win win), (win))                                                                    \
    SPY(Win_flush, (int rank, MPI_Win win), (rank, win))                                                         \
    SPY(Win_flush_all, (MPI_Win win), (win))                                                                     \
    SPY(Win_flush_local, (int rank, MPI_Win win), (rank, win))                                                   \
    SPY(Win_flush_local_all, (MPI_Win win), (win))                                                               \
    SPY(Win_sync, (MPI_Win win), (win))                                                                          \
    SPY(Win_attach, (MPI_Win win, void* base, MPI_Aint size), (win, base, size))                                 \
    SPY(Win_detach, (MPI_Win win, const void* base), (win, base))                                                \
    SPY(Request_get_status, (MPI_Request q, int* flag, MPI_Status* status), (q, flag, status))                   \
    SPY(Test, (MPI_Request * q, int* flag, MPI_Status* status), (q, flag, status))                               \
    SPY(Isend, (const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request* q),              \
        (b, n, t, to, tag, c, q))

namespace {

#define SPY(name, parameters, arguments) k##name,
enum Index { SPY_TABLE kFunctions };
#undef SPY

#define SPY(name, parameters, arguments) {"MPI_" #name},
Counter counters[kFunctions] = {SPY_TABLE};
#undef SPY
std::atomic<unsigned long long> other_threads{0};

}  // namespace

#define SPY(name, parameters, arguments)                                                             \
    extern "C" __attribute__((visibility("default"))) int PMPI_##name parameters {                   \
        static const auto next = reinterpret_cast<int(*) parameters>(host_function("PMPI_" #name));  \
        if (gettid() != getpid()) other_threads.fetch_add(1, std::memory_order_relaxed);             \
        const int error = next arguments;                                                            \
        /* What the host refuses has moved nothing: handles that are no windows are its to judge. */ \
        if (error == MPI_SUCCESS) counters[k##name].calls.fetch_add(1, std::memory_order_relaxed);   \
        return error;                                                                                \
    }
SPY_TABLE
#undef SPY

/// How many calls in this process came from another thread than the first.
extern "C" __attribute__((visibility("default"))) unsigned long long spy_other_threads() {
    return other_threads.load(std::memory_order_relaxed);
}

/// How many calls of an MPI function the host has performed in this process.
extern "C" __attribute__((visibility("default"))) unsigned long long spy_count(const char* mpi_function) {
    for (const Counter& counter : counters) {
        if (std::strcmp(counter.name, mpi_function) == 0) return counter.calls.load(std::memory_order_relaxed);
    }
    return 0;
}
