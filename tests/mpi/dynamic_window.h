// A dynamic window for one case, and addresses in it.
#pragma once

#include "harness.h"

namespace osct {

inline MPI_Aint address(const void* of) {
    MPI_Aint value = 0;
    MPI_Get_address(of, &value);
    return value;
}

/// The address at which that rank has the memory that it names itself. Collective.
inline MPI_Aint address_at(int owner, const void* mine) {
    const MPI_Aint here = address(mine);
    std::vector<MPI_Aint> all(static_cast<std::size_t>(size()));
    MPI_Allgather(&here, 1, MPI_AINT, all.data(), 1, MPI_AINT, MPI_COMM_WORLD);
    return all[static_cast<std::size_t>(owner)];
}

/// Collective over all ranks, as is its end. Errors are returned.
struct Dynamic {
    MPI_Win win = MPI_WIN_NULL;
    Dynamic() {
        CHECK_OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    }
    ~Dynamic() {
        if (win != MPI_WIN_NULL) CHECK_OK(MPI_Win_free(&win));
    }
    Dynamic(const Dynamic&) = delete;
    Dynamic& operator=(const Dynamic&) = delete;
};

}  // namespace osct
