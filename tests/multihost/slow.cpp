// Transfers over a slow network that take longer than OSC_DEBUG=peer_timeout, in both directions at once: nothing of
// them is an error, because the processes live. Arguments: the kinds of transfer to run; none: all.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "debug_setting.h"

namespace {

constexpr int kWords = 5 << 20;  // 40 MiB

int g_rank = 0;
int g_failures = 0;
long* g_base = nullptr;
MPI_Win g_win = MPI_WIN_NULL;

void expect(bool good, const char* kind, const char* what) {
    if (good) return;
    ++g_failures;
    std::printf("FAILED: rank %d, %s: %s\n", g_rank, kind, what);
}

long value_of(int rank, int word) {
    return 3L * word + rank;
}

std::vector<long> values_of(int rank) {
    std::vector<long> values(kWords);
    for (int i = 0; i < kWords; ++i)
        values[static_cast<std::size_t>(i)] = value_of(rank, i);
    return values;
}

bool holds(const long* words, int rank) {
    for (int i = 0; i < kWords; ++i)
        if (words[i] != value_of(rank, i)) return false;
    return true;
}

template <class F>
int in_lock(F&& operation) {
    const int to = 1 - g_rank;
    int error = MPI_Win_lock(MPI_LOCK_SHARED, to, 0, g_win);
    if (error == MPI_SUCCESS) error = operation(to);
    if (error == MPI_SUCCESS) error = MPI_Win_flush(to, g_win);
    const int unlocked = MPI_Win_unlock(to, g_win);
    return error != MPI_SUCCESS ? error : unlocked;
}

// The window holds what this process has put there or, for gets, what the other one is to find.
void run(const char* kind) {
    const bool gets = std::strcmp(kind, "get") == 0;
    std::vector<long> own = values_of(g_rank);
    std::copy_n(gets ? own.data() : std::vector<long>(kWords).data(), kWords, g_base);
    if (gets) own.assign(kWords, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    const double began = MPI_Wtime();
    int error = MPI_SUCCESS;
    if (gets)
        error = in_lock([&](int to) { return MPI_Get(own.data(), kWords, MPI_LONG, to, 0, kWords, MPI_LONG, g_win); });
    else if (std::strcmp(kind, "put") == 0)
        error = in_lock([&](int to) { return MPI_Put(own.data(), kWords, MPI_LONG, to, 0, kWords, MPI_LONG, g_win); });
    else if (std::strcmp(kind, "accumulate") == 0)
        error = in_lock([&](int to) {
            return MPI_Accumulate(own.data(), kWords, MPI_LONG, to, 0, kWords, MPI_LONG, MPI_SUM, g_win);
        });
    else {
        error = MPI_Win_fence(0, g_win);
        if (error == MPI_SUCCESS) error = MPI_Put(own.data(), kWords, MPI_LONG, 1 - g_rank, 0, kWords, MPI_LONG, g_win);
        const int fenced = MPI_Win_fence(0, g_win);
        if (error == MPI_SUCCESS) error = fenced;
    }
    const double took = MPI_Wtime() - began;
    MPI_Barrier(MPI_COMM_WORLD);
    expect(error == MPI_SUCCESS, kind, "an error");
    expect(holds(gets ? own.data() : g_base, 1 - g_rank), kind, "wrong data");
    // Else the transfer shows nothing.
    expect(took > 1.2 * std::atof(osct::debug_setting("peer_timeout").c_str()), kind, "shorter than the time-out");
    std::printf("rank %d: %s took %.1f s\n", g_rank, kind, took);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
    MPI_Win_allocate(MPI_Aint{kWords} * 8, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &g_base, &g_win);
    MPI_Win_set_errhandler(g_win, MPI_ERRORS_RETURN);
    for (const char* kind : {"put", "get", "accumulate", "fence"})
        if (argc == 1 || std::any_of(argv + 1, argv + argc, [&](char* one) { return std::strcmp(one, kind) == 0; }))
            run(kind);
    int failures = 0;
    MPI_Allreduce(&g_failures, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (g_rank == 0) std::printf("%s\n", failures == 0 ? "PASSED" : "FAILED");
    MPI_Win_free(&g_win);
    MPI_Finalize();
    return failures == 0 ? 0 : 1;
}
