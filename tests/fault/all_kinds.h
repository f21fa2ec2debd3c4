// Windows of all kinds, used by all processes: by whichever library serves them, and with the same outcome everywhere.
#pragma once

#include <dlfcn.h>
#include <mpi.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "plain_checks.h"

namespace osct {

inline constexpr int kWords = 1 << 17;  // of a window: 1 MiB
inline constexpr int kPieces = 64;

inline int g_rank = 0;
inline int g_size = 0;

inline void start(int& argc, char**& argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &g_size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

/// The same on all processes; else a failure.
inline int agreed(int mine, const char* what) {
    int least = 0;
    int most = 0;
    MPI_Allreduce(&mine, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&mine, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    expect(least == most, what);
    return most;
}

inline unsigned long long served(const char* function) {
    using Served = unsigned long long(const char*);
    auto* const count = reinterpret_cast<Served*>(::dlsym(RTLD_DEFAULT, "osc_served"));
    return count != nullptr ? count(function) : 0;
}

inline std::int64_t value(int rank, int index) {
    return rank * std::int64_t{1000003} + index;
}

/// A put of the whole window in pieces, a get of what another process put, and accumulates of all on one element.
inline void use(MPI_Win win, const std::int64_t* base, const std::vector<MPI_Aint>& starts) {
    const int right = (g_rank + 1) % g_size;
    const int left = (g_rank + g_size - 1) % g_size;
    const auto at = [&](int rank, int word) {
        return starts[static_cast<std::size_t>(rank)] + static_cast<MPI_Aint>(word) * MPI_Aint{sizeof(std::int64_t)};
    };
    std::vector<std::int64_t> out(kWords), in(kWords, -1);
    for (int i = 0; i < kWords; ++i)
        out[static_cast<std::size_t>(i)] = value(g_rank, i);
    const int piece = kWords / kPieces;
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < kPieces; ++i)
        expect(MPI_Put(out.data() + i * piece, piece, MPI_INT64_T, right, at(right, i * piece), piece, MPI_INT64_T,
                       win) == MPI_SUCCESS,
               "a put failed");
    expect(MPI_Win_flush_all(win) == MPI_SUCCESS, "the flush of the puts failed");
    expect(MPI_Get(in.data(), kWords, MPI_INT64_T, right, at(right, 0), kWords, MPI_INT64_T, win) == MPI_SUCCESS,
           "a get failed");
    expect(MPI_Win_flush(right, win) == MPI_SUCCESS, "the flush of the get failed");
    expect(in == out, "a get brought other data than was put");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(win);
    expect(base[0] == value(left, 0) && base[kWords - 1] == value(left, kWords - 1), "other data arrived than was put");
    MPI_Barrier(MPI_COMM_WORLD);
    for (int target = 0; target < g_size; ++target) {
        const std::int64_t one = 1;
        std::int64_t before = 0;
        for (int i = 0; i < 10; ++i)
            MPI_Accumulate(&one, 1, MPI_INT64_T, target, at(target, 0), 1, MPI_INT64_T, MPI_SUM, win);
        MPI_Fetch_and_op(&one, &before, MPI_INT64_T, target, at(target, 0), MPI_SUM, win);
        expect(MPI_Win_flush(target, win) == MPI_SUCCESS, "the flush of accumulates failed");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(win);
    expect(base[0] == value(left, 0) + 11 * g_size, "accumulates have another sum");
    expect(MPI_Win_unlock_all(win) == MPI_SUCCESS, "unlock_all failed");
    MPI_Barrier(MPI_COMM_WORLD);
    for (int target = 0; target < g_size; ++target) {
        expect(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win) == MPI_SUCCESS, "a lock failed");
        const std::int64_t mine = value(g_rank, target);
        MPI_Put(&mine, 1, MPI_INT64_T, target, at(target, 1 + g_rank), 1, MPI_INT64_T, win);
        expect(MPI_Win_unlock(target, win) == MPI_SUCCESS, "an unlock failed");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, g_rank, 0, win);
    for (int rank = 0; rank < g_size; ++rank)
        expect(base[1 + rank] == value(rank, g_rank), "a put under a lock did not arrive");
    MPI_Win_unlock(g_rank, win);
    MPI_Barrier(MPI_COMM_WORLD);
}

/// The library that serves a window; kRefused: its creation has failed.
enum Outcome : int { kRefused = -1, kHost, kServed };

/// A window of a flavour, over `own` where the program has the memory, and the call that libosc counts.
enum Kind : int { kAllocated, kCreated, kDynamic, kKinds };
inline constexpr const char* kCalls[] = {"MPI_Win_allocate", "MPI_Win_create", "MPI_Win_create_dynamic"};

inline int create(Kind kind, MPI_Comm comm, MPI_Info info, std::int64_t* own, MPI_Win& win, std::int64_t*& base) {
    constexpr MPI_Aint kBytes = MPI_Aint{kWords} * MPI_Aint{sizeof(std::int64_t)};
    if (kind == kAllocated) return MPI_Win_allocate(kBytes, 1, info, comm, static_cast<void*>(&base), &win);
    base = own;
    if (kind == kCreated) return MPI_Win_create(base, kBytes, 1, info, comm, &win);
    const int error = MPI_Win_create_dynamic(info, comm, &win);
    return error != MPI_SUCCESS ? error : MPI_Win_attach(win, base, kBytes);
}

/// Creates a window, on all processes or on none, uses it and frees it.
inline Outcome create_and_use(const char* function, const std::function<int(MPI_Win&, std::int64_t*&)>& create) {
    const unsigned long long before = served(function);
    MPI_Win win = MPI_WIN_NULL;
    std::int64_t* base = nullptr;
    const int error = agreed(class_of(create(win, base)), "the classes of a creation differ");
    if (error != MPI_SUCCESS) return kRefused;
    const int by_osc = agreed(served(function) > before ? 1 : 0, "two libraries serve one window");
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    std::vector<MPI_Aint> starts(static_cast<std::size_t>(g_size));
    int* flavor = nullptr;
    int found = 0;
    MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, static_cast<void*>(&flavor), &found);
    if (found && *flavor == MPI_WIN_FLAVOR_DYNAMIC) {
        MPI_Aint mine = 0;
        MPI_Get_address(base, &mine);
        MPI_Allgather(&mine, 1, MPI_AINT, starts.data(), 1, MPI_AINT, MPI_COMM_WORLD);
    }
    use(win, base, starts);
    if (found && *flavor == MPI_WIN_FLAVOR_DYNAMIC) MPI_Win_detach(win, base);
    expect(MPI_Win_free(&win) == MPI_SUCCESS, "MPI_Win_free failed");
    return by_osc != 0 ? kServed : kHost;
}

}  // namespace osct
