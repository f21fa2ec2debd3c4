// Windows over processes that MPI_Comm_spawn started and those that started them: MPI_COMM_WORLD has the ones or the
// others only. Before, meanwhile and after, each group has windows of its own.
#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "plain_checks.h"

namespace {

using osct::expect;

int rank = 0;
int size = 1;

enum class Flavor { Allocated, Created, Dynamic };

// Each process puts its rank into each other's memory, and adds to a counter of process 0.
void use_window(MPI_Comm comm, Flavor flavor, const char* what) {
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const MPI_Aint bytes = static_cast<MPI_Aint>((size + 1) * sizeof(long));
    std::vector<long> own(static_cast<std::size_t>(size) + 1);
    std::vector<MPI_Aint> at(static_cast<std::size_t>(size));
    long* memory = own.data();
    MPI_Win win = MPI_WIN_NULL;
    if (flavor == Flavor::Allocated) {
        MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, comm, &memory, &win);
    } else if (flavor == Flavor::Created) {
        MPI_Win_create(memory, bytes, 1, MPI_INFO_NULL, comm, &win);
    } else {
        MPI_Aint address = 0;
        MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &win);
        MPI_Win_attach(win, memory, bytes);
        MPI_Get_address(memory, &address);
        MPI_Allgather(&address, 1, MPI_AINT, at.data(), 1, MPI_AINT, comm);
    }
    MPI_Win_fence(0, win);
    std::memset(memory, 0, static_cast<std::size_t>(bytes));
    MPI_Win_fence(0, win);
    const long value = rank + 1;
    const long one = 1;
    for (int target = 0; target < size; ++target) {
        const MPI_Aint base = at[static_cast<std::size_t>(target)];
        MPI_Put(&value, 1, MPI_LONG, target, base + rank * static_cast<MPI_Aint>(sizeof value), 1, MPI_LONG, win);
    }
    MPI_Accumulate(&one, 1, MPI_LONG, 0, at[0] + size * static_cast<MPI_Aint>(sizeof one), 1, MPI_LONG, MPI_SUM, win);
    MPI_Win_fence(0, win);
    for (int origin = 0; origin < size; ++origin)
        expect(memory[origin] == origin + 1, what);
    expect(memory[size] == (rank == 0 ? size : 0), what);
    MPI_Win_fence(0, win);
    if (flavor == Flavor::Dynamic) MPI_Win_detach(win, memory);
    MPI_Win_free(&win);
}

void use_windows(MPI_Comm comm, const char* what) {
    for (const Flavor flavor : {Flavor::Allocated, Flavor::Created, Flavor::Dynamic})
        use_window(comm, flavor, what);
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm parent = MPI_COMM_NULL;
    MPI_Comm_get_parent(&parent);
    const bool spawned = parent != MPI_COMM_NULL;
    use_windows(MPI_COMM_WORLD, "a window before the processes meet");
    MPI_Comm others = parent;
    if (!spawned) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        if (MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &others, MPI_ERRCODES_IGNORE) !=
            MPI_SUCCESS) {
            std::printf("SKIPPED: the host cannot spawn processes here\n");
            MPI_Finalize();
            return 0;
        }
    }
    MPI_Comm all = MPI_COMM_NULL;
    MPI_Intercomm_merge(others, spawned ? 1 : 0, &all);
    use_windows(all, "a window over spawned processes");
    use_windows(MPI_COMM_WORLD, "a window of one group beside the other");
    int worst = 0;
    MPI_Allreduce(&osct::g_failures, &worst, 1, MPI_INT, MPI_MAX, all);
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&others);
    use_windows(MPI_COMM_WORLD, "a window after the groups have parted");
    MPI_Finalize();
    return osct::g_failures > 0 || worst > 0 ? 1 : 0;
}
