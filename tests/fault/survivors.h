// The common parts of programs in which a rank is killed: checks without a collective call, because a host collective
// would wait for the dead process, and an end by _exit.
#pragma once

#include <mpi.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "osc/osc.h"

#pragma weak osc_served

namespace fault {

inline int g_rank = 0;
inline int g_size = 0;
inline int g_checks = 0;
inline int g_failures = 0;
inline const char* g_scenario = "";

inline constexpr int kVictim = 1;
inline double patience() {
    const char* const text = std::getenv("FAULT_PATIENCE");
    return text != nullptr ? std::atof(text) : 10;
}
inline const double kPatience = patience();  // seconds in which every call has to return

/// Starts MPI with errors returned.
inline void begin(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &g_size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

inline MPI_Group group_of(const std::vector<int>& ranks) {
    MPI_Group world, some;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, static_cast<int>(ranks.size()), ranks.data(), &some);
    MPI_Group_free(&world);
    return some;
}

inline double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline void sleep_for(double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

inline void check(bool good, const char* what, long got, long wanted) {
    ++g_checks;
    if (good) return;
    ++g_failures;
    std::printf("rank %d, %s: %s is %ld, not %ld\n", g_rank, g_scenario, what, got, wanted);
    std::fflush(stdout);
}

inline void check_eq(long got, long wanted, const char* what) {
    check(got == wanted, what, got, wanted);
}

/// Makes a call and checks that it returns in time; its error class.
template <class Call>
int timed(const char* what, Call&& call) {
    const double begin = now();
    const int error = call();
    check(now() - begin < kPatience, what, std::lround(now() - begin), std::lround(kPatience));
    int value = MPI_SUCCESS;
    if (error != MPI_SUCCESS) MPI_Error_class(error, &value);
    return value;
}

/// The call must report in time that a process is dead.
template <class Call>
void must_report(const char* what, Call&& call) {
    check_eq(timed(what, call), MPI_ERR_OTHER, what);
}

/// The call must return in time; whether it succeeds is its own affair.
template <class Call>
void must_return(const char* what, Call&& call) {
    const int error = timed(what, call);
    check(error == MPI_SUCCESS || error == MPI_ERR_OTHER, what, error, MPI_ERR_OTHER);
}

template <class Call>
void must_work(const char* what, Call&& call) {
    check_eq(timed(what, call), MPI_SUCCESS, what);
}

/// The PIDs of all processes, so that the victim can be killed.
inline std::vector<int> pids() {
    std::vector<int> all(static_cast<std::size_t>(g_size));
    const int mine = static_cast<int>(::getpid());
    MPI_Allgather(&mine, 1, MPI_INT, all.data(), 1, MPI_INT, MPI_COMM_WORLD);
    return all;
}

/// kill -9 of the calling process, which need not stop for it. By itself, because no other may know its number.
inline void kill_self_after(double seconds) {
    std::thread([seconds] {
        sleep_for(seconds);
        ::kill(::getpid(), SIGKILL);
    }).detach();
}

/// A child that stops this process, and continues it half a second later.
inline pid_t stop_after(double seconds) {
    const pid_t parent = ::getpid();
    const pid_t child = ::fork();
    if (child != 0) return child;
    ::usleep(static_cast<useconds_t>(seconds * 1e6));
    ::kill(parent, SIGSTOP);
    ::usleep(500000);
    ::kill(parent, SIGCONT);
    ::_exit(0);
}

/// A barrier of the survivors: a process that has ended, or has given up a window, would be one more dead process for
/// the others. It uses files in a folder of the runner's, because the host's messages no longer work.
inline void meet_survivors(const char* point, bool wait = true) {
    const char* folder = std::getenv("FAULT_MEETING");
    if (folder == nullptr) return sleep_for(wait ? 3 : 0);
    const auto place = [&](int rank) { return std::string(folder) + "/" + point + std::to_string(rank); };
    if (std::FILE* mine = std::fopen(place(g_rank).c_str(), "w"); mine != nullptr) std::fclose(mine);
    for (const double end = now() + 2 * kPatience; wait && now() < end; sleep_for(0.01)) {
        int here = 0;
        for (int rank = 0; rank < g_size; ++rank)
            here += ::access(place(rank).c_str(), F_OK) == 0 ? 1 : 0;
        if (here >= g_size - 1) return;
    }
}

/// Waits until the process has come to the point.
inline void await_process(const char* point, int rank) {
    const char* folder = std::getenv("FAULT_MEETING");
    if (folder == nullptr) return sleep_for(3);
    const std::string place = std::string(folder) + "/" + point + std::to_string(rank);
    for (const double end = now() + 2 * kPatience; ::access(place.c_str(), F_OK) != 0 && now() < end;)
        sleep_for(0.01);
}

/// Ends the process without MPI_Finalize, which would wait for the dead process.
[[noreturn]] inline void leave(bool wait_for_others = true) {
    const auto served = [](const char* call) { return osc_served != nullptr ? osc_served(call) : 0; };
    if (served("MPI_Win_lock") + served("MPI_Win_fence") + served("MPI_Win_start") + served("MPI_Win_post") == 0)
        check(false, "calls that libosc served", 0, 1);
    meet_survivors("end", wait_for_others);
    std::printf("survivor %d: %d checks, %d failures\n", g_rank, g_checks, g_failures);
    std::fflush(stdout);
    ::_exit(g_failures == 0 ? 0 : 1);
}

}  // namespace fault
