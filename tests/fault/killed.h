// The common parts of the scenarios in killed.cpp: the roles of the ranks, the window, and calls that only a death may
// make fail.
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "debug_setting.h"
#include "survivors.h"

namespace fault {

inline constexpr int kBlock = 5000;  // longs: more than one message takes, and enough for a direct access
// Of the window; behind the block come counters, one for each rank from kCounters on.
inline constexpr int kCount = 8192;
inline constexpr int kCounters = 6000;
inline constexpr int kRounds = 150;     // of epochs that end by themselves, as many for all
inline constexpr double kWhile = 2.0;   // seconds for which the others go on: the death is long past then
inline constexpr double kLatest = 0.1;  // of the death
inline constexpr long kNothing = -7;    // in buffers that a get has to fill

enum Role { kOrigin, kThird, kTarget, kSecond };

inline int g_shift = 0;
inline int g_dying = 0;
inline const char* g_kind = "";
inline bool g_private = false;
inline MPI_Win g_win = MPI_WIN_NULL;
inline long* g_base = nullptr;
inline std::atomic<int> g_stage{0};  // that the dying is in, for a death in this one

inline int rank_of(int role) {
    return (role + g_shift) % 4;
}
inline bool is(int role) {
    return g_rank == rank_of(role);
}
inline bool dying() {
    return g_rank == g_dying;
}
inline bool participates(int rank) {
    return rank != rank_of(kThird);
}

// True if the call worked. Any error must be a report of the death.
template <class Call>
bool ok(const char* what, Call&& call) {
    const int error = timed(what, call);
    check(error == MPI_SUCCESS || error == MPI_ERR_OTHER, what, error, MPI_ERR_OTHER);
    return error == MPI_SUCCESS;
}

// Goes on with epochs until one fails, or for as long as the death can matter.
template <class Round>
bool repeat(Round&& round) {
    for (const double end = now() + kWhile; now() < end || dying();)
        if (!round()) return false;
    return true;
}

inline void make_window() {
    const MPI_Aint bytes = kCount * static_cast<MPI_Aint>(sizeof(long));
    if (g_private) {
        g_base = static_cast<long*>(std::malloc(static_cast<std::size_t>(bytes)));
        MPI_Win_create(g_base, bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &g_win);
    } else {
        MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &g_base, &g_win);
    }
    MPI_Win_set_errhandler(g_win, MPI_ERRORS_RETURN);
    std::memset(g_base, 0, static_cast<std::size_t>(bytes));
}

inline void check_same(const std::vector<long>& block, long wanted, const char* what) {
    for (const long value : block)
        if (value != wanted) return check_eq(value, wanted, what);
    check_eq(wanted, wanted, what);
}

inline int put(const std::vector<long>& from, int target, MPI_Aint disp) {
    const auto count = static_cast<int>(from.size());
    return MPI_Put(from.data(), count, MPI_LONG, target, disp, count, MPI_LONG, g_win);
}

inline int get(std::vector<long>& to, int target, MPI_Aint disp) {
    const auto count = static_cast<int>(to.size());
    to.assign(to.size(), kNothing);
    return MPI_Get(to.data(), count, MPI_LONG, target, disp, count, MPI_LONG, g_win);
}

inline int add_one(int target, MPI_Aint disp) {
    static const long one = 1;
    return MPI_Accumulate(&one, 1, MPI_LONG, target, disp, 1, MPI_LONG, MPI_SUM, g_win);
}

inline bool unlock(int target, bool good) {
    return ok("unlock", [&] { return MPI_Win_unlock(target, g_win); }) && good;
}

// With two-level locks, rank 0's word is part of all exclusive locks and lock_alls, and a process that dies in a
// lock_all keeps the locks of all.
inline bool two_level() {
    return osct::debug_setting("lock_scheme") == "two_level";
}

// Checks that a process whose calls all worked did not need the dead one. No process needs the third; and on its own
// node a dead target's memory and locks outlive it.
inline void must_have_noticed(bool went_well, bool needs_the_dead) {
    if (needs_the_dead && participates(g_rank))
        check(!went_well, "calls that failed, of those that needed the dead", 0, 1);
    if (g_dying == rank_of(kThird) && !(two_level() && g_dying == 0))
        check(went_well, "calls that failed, of those that did not need the dead", 1, 0);
}

inline bool far_from(int rank) {
    const int nodes = std::max(std::atoi(osct::debug_setting("fake_nodes").c_str()), 1);
    return rank * nodes / 4 != g_rank * nodes / 4;
}

}  // namespace fault
