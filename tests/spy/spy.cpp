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
    explicit Counter(const char* function) : name(function), next(first) { first = this; }
    static inline Counter* first = nullptr;
    const char* const name;
    Counter* const next;
    std::atomic<unsigned long long> calls{0};
};
std::atomic<unsigned long long> other_threads{0};

void* host_function(const char* name) {
    return dlsym(RTLD_NEXT, name);
}

}  // namespace

#define SPY(name, parameters, arguments)                                                             \
    static Counter counter_##name("MPI_" #name);                                                     \
    extern "C" __attribute__((visibility("default"))) int PMPI_##name parameters {                   \
        static const auto next = reinterpret_cast<int(*) parameters>(host_function("PMPI_" #name));  \
        if (gettid() != getpid()) other_threads.fetch_add(1, std::memory_order_relaxed);             \
        const int error = next arguments;                                                            \
        /* What the host refuses has moved nothing: handles that are no windows are its to judge. */ \
        if (error == MPI_SUCCESS) counter_##name.calls.fetch_add(1, std::memory_order_relaxed);      \
        return error;                                                                                \
    }
#define OSC_ENTRY(kind, name, parameters, arguments) SPY_##kind(name, parameters, arguments)
#if MPI_VERSION < 4  // then the host has no large counts, and nothing may export them in its place
#define OSC_LARGE_ENTRY(kind, name, parameters, arguments)
#endif
#define SPY_Data SPY
#define SPY_Sync SPY
#define SPY_Window(name, parameters, arguments)
#define SPY_Comm SPY_Window
#define SPY_Query SPY_Window
#include "api/entries.def"
SPY(Win_attach, (MPI_Win win, void* base, MPI_Aint size), (win, base, size))
SPY(Win_detach, (MPI_Win win, const void* base), (win, base))
SPY(Request_get_status, (MPI_Request q, int* flag, MPI_Status* status), (q, flag, status))
SPY(Test, (MPI_Request * q, int* flag, MPI_Status* status), (q, flag, status))
SPY(Isend, (const void* b, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request* q),
    (b, n, t, to, tag, c, q))

/// How many calls in this process came from another thread than the first.
extern "C" __attribute__((visibility("default"))) unsigned long long spy_other_threads() {
    return other_threads.load(std::memory_order_relaxed);
}

/// How many calls of an MPI function the host has performed in this process.
extern "C" __attribute__((visibility("default"))) unsigned long long spy_count(const char* mpi_function) {
    for (const Counter* counter = Counter::first; counter != nullptr; counter = counter->next)
        if (std::strcmp(counter->name, mpi_function) == 0) return counter->calls.load(std::memory_order_relaxed);
    return 0;
}
