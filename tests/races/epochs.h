// What the programs of the corpus share: a window with its expected report, and the epochs of each kind of
// synchronisation around its accesses.
#pragma once

#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <string>

namespace races {

inline int g_rank = 0;
inline int g_first = 0;   // the process of the first access
inline int g_second = 1;  // and of the second one, unless one process makes both

enum class World { Fence, Pscw, LockAll, Locks };
inline constexpr const char* kWorlds[] = {"fence", "pscw", "lock_all", "locks"};

// A window over 512 bytes of each process, and the buffers of operations, which no two of them share.
class Case {
  public:
    /// `ops`: the value of accumulate_ops, or null.
    explicit Case(const std::string& name, int unit = 1, const char* ops = nullptr) : name_(name) {
        MPI_Info info = MPI_INFO_NULL;
        if (ops != nullptr) {
            MPI_Info_create(&info);
            MPI_Info_set(info, "accumulate_ops", ops);
        }
        MPI_Win_allocate(512, unit, info, MPI_COMM_WORLD, &memory_, &win_);
        if (ops != nullptr) MPI_Info_free(&info);
        std::memset(memory_, 0, 512);
        MPI_Win_set_name(win_, name.c_str());
        MPI_Barrier(MPI_COMM_WORLD);
    }
    ~Case() { MPI_Win_free(&win_); }
    Case(const Case&) = delete;
    Case& operator=(const Case&) = delete;

    void expect_nothing() const {
        if (g_rank == 0) std::printf("case\t%s\n", name_.c_str());
    }
    void expect(const char* first, const char* second, int lo, int hi, bool one_origin, const char* reason = "") const {
        if (g_rank != 0) return;
        std::printf(
            "case\t%s\tMPI_%s of rank %d at rank 0, bytes [%d, %d)\tMPI_%s of rank %d at rank 0, bytes [%d, %d), "
            "%s%s\n",
            name_.c_str(), first, g_first, lo, hi, second, one_origin ? g_first : g_second, lo, hi,
            one_origin ? "while the first is not complete" : "and no synchronisation orders the two", reason);
    }

    /// The same of two origins, with the full names of the calls.
    void expect_calls(const char* first, const char* second, int lo, int hi) const {
        if (g_rank != 0) return;
        std::printf(
            "case\t%s\t%s of rank %d at rank 0, bytes [%d, %d)\t%s of rank %d at rank 0, bytes [%d, %d), "
            "and no synchronisation orders the two\n",
            name_.c_str(), first, g_first, lo, hi, second, g_second, lo, hi);
    }

    MPI_Win win() const { return win_; }
    long* value() { return &values_[used_++ * 8]; }

  private:
    const std::string name_;
    char* memory_ = nullptr;
    MPI_Win win_ = MPI_WIN_NULL;
    long values_[64] = {};
    int used_ = 0;
};

inline bool is_origin() {
    return g_rank == g_first || g_rank == g_second;
}

inline MPI_Group group_of(int first, int count) {
    const int ranks[] = {first, first + 1};
    MPI_Group all;
    MPI_Group some;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, count, ranks, &some);
    MPI_Group_free(&all);
    return some;
}

inline void post(MPI_Win win) {
    MPI_Group group = group_of(g_first, 2);
    if (g_rank == 0) MPI_Win_post(group, 0, win);
    MPI_Group_free(&group);
}
inline void start(MPI_Win win) {
    MPI_Group group = group_of(0, 1);
    MPI_Win_start(group, 0, win);
    MPI_Group_free(&group);
}
inline void expose(MPI_Win win) {
    post(win);
    if (is_origin()) start(win);
}
inline void conceal(MPI_Win win) {
    if (is_origin()) MPI_Win_complete(win);
    if (g_rank == 0) MPI_Win_wait(win);
}
inline void lock(MPI_Win win) {
    if (is_origin()) MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
}
inline void unlock(MPI_Win win) {
    if (is_origin()) MPI_Win_unlock(0, win);
}

// Opens the epochs of a world.
inline void begin(World world, MPI_Win win) {
    if (world == World::Fence) MPI_Win_fence(0, win);
    if (world == World::Pscw) expose(win);
    if (world == World::LockAll) MPI_Win_lock_all(0, win);
    if (world == World::Locks) lock(win);
    if (world >= World::LockAll) MPI_Barrier(MPI_COMM_WORLD);
}
inline void end(World world, MPI_Win win) {
    if (world == World::Fence) MPI_Win_fence(0, win);
    if (world == World::Pscw) conceal(win);
    if (world == World::LockAll) MPI_Win_unlock_all(win);
    if (world == World::Locks) unlock(win);
}
// Orders what comes before and after, in the way of the world; or, if `orders` is false, only in time.
inline void between(World world, MPI_Win win, bool orders) {
    if (!orders) {
        if (world >= World::LockAll) MPI_Barrier(MPI_COMM_WORLD);
    } else if (world == World::LockAll) {
        MPI_Win_flush_all(win);
        MPI_Barrier(MPI_COMM_WORLD);
    } else {
        end(world, win);
        if (world == World::Locks) MPI_Barrier(MPI_COMM_WORLD);
        begin(world, win);
    }
}

// notified.cpp
void notified_cases();

}  // namespace races
