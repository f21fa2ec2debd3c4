// The cases of the usage checker's corpus. A case is a function; it uses every process of MPI_COMM_WORLD, which has
// two.
#pragma once

#include <mpi.h>

#include <vector>

namespace corpus {

struct Case {
    const char* name;
    void (*run)();
};

/// Programs that keep the rules, and programs that break one. The checker is silent about the former. In the latter a
/// comment "reported: NAME" marks each line that it must name, with the report's name.
extern const std::vector<Case> kRight;
extern const std::vector<Case> kWrong;
/// Wrong programs that never end.
extern const std::vector<Case> kHanging;

inline int rank() {
    int me = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    return me;
}

/// A window of `ints` zeros on each process, with MPI_ERRORS_RETURN, freed at the end of the scope after a barrier.
/// The base is aligned to 64 bytes.
class IntWindow {
  public:
    explicit IntWindow(int ints = 64, int unit = sizeof(int)) {
        MPI_Win_allocate(static_cast<MPI_Aint>(sizeof(int)) * ints, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &base_, &win_);
        MPI_Win_set_errhandler(win_, MPI_ERRORS_RETURN);
        for (int i = 0; i < ints; ++i)
            base_[i] = 0;
        MPI_Barrier(MPI_COMM_WORLD);
    }
    ~IntWindow() { MPI_Win_free(&win_); }
    IntWindow(const IntWindow&) = delete;
    IntWindow& operator=(const IntWindow&) = delete;
    operator MPI_Win() const { return win_; }
    int* base() const { return base_; }

  private:
    MPI_Win win_ = MPI_WIN_NULL;
    int* base_ = nullptr;
};

/// MPI_COMM_WORLD's process `rank` as a group.
class GroupOf {
  public:
    explicit GroupOf(int rank) {
        MPI_Group all = MPI_GROUP_NULL;
        MPI_Comm_group(MPI_COMM_WORLD, &all);
        MPI_Group_incl(all, 1, &rank, &group_);
        MPI_Group_free(&all);
    }
    ~GroupOf() { MPI_Group_free(&group_); }
    GroupOf(const GroupOf&) = delete;
    GroupOf& operator=(const GroupOf&) = delete;
    operator MPI_Group() const { return group_; }

  private:
    MPI_Group group_ = MPI_GROUP_NULL;
};

/// Runs what only one process does: the wrong call, as a rule.
template <class F>
void only(int process, F&& what) {
    if (rank() == process) what();
}

}  // namespace corpus
