// How many small operations a second the threads of rank 0 complete together (MPI_THREAD_MULTIPLE):
//   thread_bench [MILLISECONDS]
// Threads 1, 2 and 4; thread i's target is rank 1 + i modulo the number of targets, so ranks decide how many targets
// there are. A thread flushes after 64 operations of 8 bytes. Each kind and number of threads gives one line of JSON on
// rank 0: the median and the quartiles of 9 rounds in turns, in operations a second. Exit status 1: a target found
// wrong data.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kThreads[] = {1, 2, 4};
constexpr int kMost = 4;
constexpr int kRounds = 9;
constexpr int kPerFlush = 64;
constexpr std::size_t kWords = std::size_t{kMost} * kPerFlush;  // each thread has its own

enum class Kind { put, accumulate };
constexpr std::array<const char*, 2> kNames = {"put8", "acc8"};

// Thread `i` issues operations for so long; how many.
std::uint64_t issue(Kind kind, int i, int target, MPI_Win win, Clock::time_point end) {
    const std::uint64_t one = 1;
    std::uint64_t flushes = 0;
    do {
        ++flushes;
        for (int word = 0; word < kPerFlush; ++word) {
            const MPI_Aint at = i * kPerFlush + word;
            if (kind == Kind::put)
                MPI_Put(&flushes, 1, MPI_UINT64_T, target, at, 1, MPI_UINT64_T, win);
            else
                MPI_Accumulate(&one, 1, MPI_UINT64_T, target, at, 1, MPI_UINT64_T, MPI_SUM, win);
        }
        MPI_Win_flush(target, win);
    } while (Clock::now() < end);
    return flushes;
}

// What each word of the targets must hold, by thread.
using Expected = std::array<std::uint64_t, kMost>;

double rate(Kind kind, int threads, int targets, MPI_Win win, int milliseconds, Expected& expected) {
    std::array<std::uint64_t, kMost> flushes{};
    std::vector<std::thread> others;
    const auto began = Clock::now();
    const auto end = began + std::chrono::milliseconds(milliseconds);
    const auto work = [&](int i) { flushes[i] = issue(kind, i, 1 + i % targets, win, end); };
    for (int i = 1; i < threads; ++i)
        others.emplace_back(work, i);
    work(0);
    for (std::thread& other : others)
        other.join();
    const std::chrono::duration<double> took = Clock::now() - began;
    std::uint64_t all = 0;
    for (int i = 0; i < threads; ++i) {
        all += flushes[i];
        expected[i] = kind == Kind::put ? flushes[i] : expected[i] + flushes[i];
    }
    return static_cast<double>(all) * kPerFlush / took.count();
}

void report(Kind kind, int threads, int targets, std::vector<double> rates) {
    std::sort(rates.begin(), rates.end());
    std::printf(
        "{\"measure\": \"%s\", \"threads\": %d, \"targets\": %d, \"median\": %.0f, \"q1\": %.0f, \"q3\": %.0f}\n",
        kNames[static_cast<std::size_t>(kind)], threads, targets, rates[kRounds / 2], rates[kRounds / 4],
        rates[kRounds - 1 - kRounds / 4]);
    std::fflush(stdout);
}

// The values of rank 0. Targets sleep meanwhile, because the threads need their cores.
void await(Expected& expected) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibcast(expected.data(), kMost, MPI_UINT64_T, 0, MPI_COMM_WORLD, &request);
    for (int done = 0; done == 0; MPI_Test(&request, &done, MPI_STATUS_IGNORE))
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// Whether the words of this target are what its threads have left there.
bool holds(const std::uint64_t* words, int rank, int targets, const Expected& expected) {
    for (int i = 0; i < kMost; ++i) {
        if (1 + i % targets != rank) continue;
        for (int word = 0; word < kPerFlush; ++word)
            if (words[i * kPerFlush + word] != expected[i]) return false;
    }
    return true;
}

bool measure(Kind kind, int rank, int targets, int milliseconds) {
    std::uint64_t* words = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_allocate(kWords * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &words, &win);
    std::fill_n(words, kWords, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    Expected expected{};
    if (rank == 0) {
        MPI_Win_lock_all(0, win);
        std::array<std::vector<double>, std::size(kThreads)> rates;
        for (int round = 0; round < kRounds; ++round)
            for (std::size_t k = 0; k < std::size(kThreads); ++k)
                rates[k].push_back(rate(kind, kThreads[k], targets, win, milliseconds, expected));
        MPI_Win_unlock_all(win);
        for (std::size_t k = 0; k < std::size(kThreads); ++k)
            report(kind, kThreads[k], targets, rates[k]);
    }
    await(expected);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    int right = rank == 0 || holds(words, rank, targets, expected) ? 1 : 0;
    MPI_Win_unlock(rank, win);
    MPI_Allreduce(MPI_IN_PLACE, &right, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Win_free(&win);
    return right != 0;
}

}  // namespace

int main(int argc, char** argv) {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    int rank = 0;
    int ranks = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int milliseconds = argc > 1 ? std::atoi(argv[1]) : 100;
    if (ranks < 2 || provided != MPI_THREAD_MULTIPLE || milliseconds < 1) {
        if (rank == 0) std::fprintf(stderr, "thread_bench: needs MPI_THREAD_MULTIPLE and at least 2 ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    bool right = measure(Kind::put, rank, ranks - 1, milliseconds);
    right = measure(Kind::accumulate, rank, ranks - 1, milliseconds) && right;
    if (!right && rank == 0) std::fprintf(stderr, "thread_bench: a target found wrong data\n");
    MPI_Finalize();
    return right ? 0 : 1;
}
