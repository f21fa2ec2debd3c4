// A program whose plug-in, here a set of pointers, takes MPI's functions from the host's library by dlsym(), as
// language bindings do, while the program itself is linked with MPI; another plug-in is a library whose own calls
// prefer the host's. All use the same windows. Preloaded, libosc serves all calls; what dlsym() gives for other names
// and handles stays. Arguments: the library, and when the program loads it.
#include <dlfcn.h>
#include <mpi.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "plain_checks.h"

namespace {

using osct::expect;

int me = 0, processes = 1, next_rank = 0, previous = 0;

void* library = nullptr;  // the host's

template <class Function>
Function find(const char* name) {
    void* const address = ::dlsym(library, name);
    if (address == nullptr) {
        std::printf("there is no %s\n", name);
        std::exit(1);
    }
    return reinterpret_cast<Function>(address);
}
#define PLUGIN(name) find<decltype(&name)>(#name)

long* allocate(MPI_Win& win) {
    long* base = nullptr;
    MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&base), &win);
    std::memset(base, 0xff, 64);
    MPI_Barrier(MPI_COMM_WORLD);
    return base;
}

// The program makes and frees the window; the plug-in uses it, by MPI_ and by PMPI_ names.
void used_by_the_plugin() {
    MPI_Win win = MPI_WIN_NULL;
    long* const base = allocate(win);
    void* seen = nullptr;
    int found = 0;
    PLUGIN(MPI_Win_get_attr)(win, MPI_WIN_BASE, static_cast<void*>(&seen), &found);
    expect(found != 0 && seen == base, "MPI_WIN_BASE is the window's memory");
    const long value = 40 + me, one = 1;
    PLUGIN(MPI_Win_fence)(0, win);
    PLUGIN(MPI_Put)(&value, 1, MPI_LONG, next_rank, 0, 1, MPI_LONG, win);
    MPI_Win_fence(0, win);
    expect(base[0] == 40 + previous, "a put of the plug-in arrives at a fence of the program");
    MPI_Put(&one, 1, MPI_LONG, next_rank, 1, 1, MPI_LONG, win);
    PLUGIN(PMPI_Win_fence)(MPI_MODE_NOSUCCEED, win);
    expect(base[1] == 1, "a put of the program arrives at a fence of the plug-in");
    MPI_Barrier(MPI_COMM_WORLD);
    long got = -1, before = -1;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next_rank, 0, win);
    PLUGIN(PMPI_Fetch_and_op)(&one, &before, MPI_LONG, next_rank, 1, MPI_SUM, win);
    PLUGIN(MPI_Win_flush)(next_rank, win);
    MPI_Get(&got, 1, MPI_LONG, next_rank, 1, 1, MPI_LONG, win);
    PLUGIN(MPI_Win_unlock)(next_rank, win);
    expect(before == 1 && got == 2, "fetch_and_op of the plug-in under a lock of the program");
    MPI_Request request = MPI_REQUEST_NULL;
    PLUGIN(MPI_Win_lock_all)(0, win);
    PLUGIN(MPI_Rget)(&got, 1, MPI_LONG, next_rank, 0, 1, MPI_LONG, win, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_unlock_all(win);
    expect(got == 40 + me, "a request of the plug-in, completed by the program");
    MPI_Win_free(&win);
    expect(win == MPI_WIN_NULL, "MPI_Win_free sets MPI_WIN_NULL");
}

// The other way round.
void made_by_the_plugin() {
    MPI_Win win = MPI_WIN_NULL;
    long* base = nullptr;
    PLUGIN(MPI_Win_allocate)(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&base), &win);
    base[0] = -1;
    const long value = 50 + me;
    MPI_Win_fence(0, win);
    MPI_Put(&value, 1, MPI_LONG, next_rank, 0, 1, MPI_LONG, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    expect(base[0] == 50 + previous, "a put of the program into a window of the plug-in");
    PLUGIN(MPI_Win_free)(&win);
    expect(win == MPI_WIN_NULL, "MPI_Win_free of the plug-in sets MPI_WIN_NULL");
}

using CountAt = long (*)(MPI_Win, int);
CountAt load(const char* path, int binding) {
    void* const deep = ::dlopen(path, binding | RTLD_LOCAL | RTLD_DEEPBIND);
    return deep != nullptr ? reinterpret_cast<CountAt>(::dlsym(deep, "count_at")) : nullptr;
}

// `count_at`: loaded before, or null.
void used_by_a_library(CountAt count_at, const char* path) {
    MPI_Win win = MPI_WIN_NULL;
    long* const base = allocate(win);
    if (count_at == nullptr) count_at = load(path, RTLD_NOW);
    expect(count_at != nullptr, "the library opens");
    const long before = count_at != nullptr ? count_at(win, next_rank) : 0;
    MPI_Barrier(MPI_COMM_WORLD);
    expect(before == -1 && base[0] == 0, "a sum by a library that is bound to the host");
    MPI_Win_free(&win);
}

// Another thread makes windows, and so looks for such libraries, while this one loads the library again and again.
void loaded_beside_a_thread(const char* path) {
    std::atomic<bool> stops{false};
    MPI_Win win = MPI_WIN_NULL;
    MPI_Comm own = MPI_COMM_NULL;
    long* const base = allocate(win);
    MPI_Comm_dup(MPI_COMM_SELF, &own);
    std::thread maker([&] {
        while (!stops) {
            MPI_Win made = MPI_WIN_NULL;
            MPI_Win_create(nullptr, 0, 1, MPI_INFO_NULL, own, &made);
            MPI_Win_free(&made);
        }
    });
    for (long i = -1; i < 100; ++i) {
        void* const deep = ::dlopen(path, RTLD_LAZY | RTLD_LOCAL | RTLD_DEEPBIND);
        reinterpret_cast<CountAt>(::dlsym(deep, "count_at"))(win, me);
        expect(base[0] == i + 1, "a sum by a library that was just loaded");
        ::dlclose(deep);
    }
    stops = true;
    maker.join();
    MPI_Comm_free(&own);
    MPI_Win_free(&win);
}

void memory() {
    void* piece = nullptr;
    PLUGIN(MPI_Alloc_mem)(100, MPI_INFO_NULL, static_cast<void*>(&piece));
    std::memset(piece, 1, 100);
    MPI_Free_mem(piece);
    MPI_Alloc_mem(100, MPI_INFO_NULL, static_cast<void*>(&piece));
    std::memset(piece, 1, 100);
    PLUGIN(MPI_Free_mem)(piece);
}

// A library of the program, and the pseudo-handles, which depend on the caller.
void other_names() {
    int rank = -1;
    PLUGIN(MPI_Comm_rank)(MPI_COMM_WORLD, &rank);
    expect(rank == me, "a function that libosc does not have is the host's");
    expect(::dlsym(library, "MPI_No_such_function") == nullptr && ::dlerror() != nullptr,
           "an unknown name is an error");
    void* const program = ::dlopen(nullptr, RTLD_LAZY);
    expect(::dlsym(program, "MPI_Put") == reinterpret_cast<void*>(&MPI_Put),
           "the program's handle finds its own MPI_Put");
    expect(::dlsym(RTLD_DEFAULT, "MPI_Put") == reinterpret_cast<void*>(&MPI_Put), "RTLD_DEFAULT finds the same");
    // The program defines toascii, below; the next definition is the C library's.
    const auto next = reinterpret_cast<int (*)(int)>(::dlsym(RTLD_NEXT, "toascii"));
    const auto own = reinterpret_cast<int (*)(int)>(::dlsym(RTLD_DEFAULT, "toascii"));
    expect(own != nullptr && own('A') == -77, "RTLD_DEFAULT finds the program's function");
    expect(next != nullptr && next('A') == 'A', "RTLD_NEXT finds the function behind the caller's");
    ::dlclose(program);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int toascii(int) noexcept {
    return -77;
}

int main(int, char** argv) {
    Dl_info host{};
    const CountAt early = std::strcmp(argv[2], "early") == 0 ? load(argv[1], RTLD_LAZY) : nullptr;
    const bool threads = std::strcmp(argv[2], "threads") == 0;
    int provided = MPI_THREAD_SINGLE;
    MPI_Init_thread(nullptr, nullptr, threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    next_rank = (me + 1) % processes;
    previous = (me + processes - 1) % processes;
    ::dladdr(reinterpret_cast<void*>(&MPI_Comm_rank), &host);
    library = ::dlopen(host.dli_fname, RTLD_NOW | RTLD_LOCAL);
    expect(library != nullptr, "the host's library opens");
    if (library != nullptr && threads) {
        loaded_beside_a_thread(argv[1]);
    } else if (library != nullptr) {
        used_by_the_plugin();
        made_by_the_plugin();
        used_by_a_library(early, argv[1]);
        memory();
        other_names();
    }
    const auto served = reinterpret_cast<unsigned long long (*)(const char*)>(::dlsym(RTLD_DEFAULT, "osc_served"));
    if (std::getenv("TEST_OSC") != nullptr && !threads)
        expect(served != nullptr && served("MPI_Put") == 3 && served("MPI_Win_free") == 3 && served("MPI_Rget") == 1,
               "libosc serves the calls of both");
    MPI_Finalize();
    return osct::g_failures != 0 ? 1 : 0;
}
