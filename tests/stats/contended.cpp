// The statistics of lock contention, exactly (OSC_STATS): in each round rank 1 asks for a lock that rank 0 holds, and
// rank 0 releases it when rank 1 sleeps in the queue. Counts decide, no time does.
#include <mpi.h>
#include <osc/osc.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <thread>

#include "window_number.h"

#pragma weak osc_window_stat

namespace {

constexpr int kRounds = 10;

unsigned long long stat(MPI_Win win, const char* name) {
    unsigned long long value = 0;
    if (osc_window_stat(number_of(win), name, &value) != 0) std::printf("FAILED: no statistic %s\n", name);
    return value;
}

bool sleeps(int thread) {
    std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
    std::string text;
    std::getline(file, text);
    return text.find(") S ") != std::string::npos;
}

}  // namespace

int main(int argc, char** argv) {
    int level = 0;
    int rank = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int* base = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&base), &win);
    for (int round = 0; round < kRounds; ++round) {
        if (rank == 0) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            MPI_Recv(nullptr, 0, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Win_unlock(0, win);
        } else if (rank == 1) {
            const int asking = ::gettid();
            std::jthread watcher([&] {
                while (stat(win, "locks.contended") <= static_cast<unsigned>(round) || !sleeps(asking))
                    ::usleep(100);
                MPI_Send(nullptr, 0, MPI_INT, 0, 0, MPI_COMM_WORLD);
            });
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
            MPI_Win_unlock(0, win);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    const unsigned long long contended = stat(win, "locks.contended");
    const unsigned long long handed_over = stat(win, "locks.handed_over");
    const bool good = contended == (rank == 1 ? kRounds : 0) && handed_over == (rank == 0 ? kRounds : 0);
    if (!good)
        std::printf("FAILED: rank %d found %llu locks taken and handed %llu over in %d rounds\n", rank, contended,
                    handed_over, kRounds);
    MPI_Win_free(&win);
    MPI_Finalize();
    return good ? 0 : 1;
}
