// MPI_Comm_split_type for shared memory: the host's result, or a larger communicator of all processes that can share
// memory with libosc.
#pragma once

#include <mpi.h>

namespace osc {

/// The arguments of MPI_Comm_split_type.
struct Split {
    MPI_Comm comm;
    int type;
    int key;
    MPI_Info info;
};

/// Collective over the intracommunicator; all its processes call it, whatever their split type. `grown`: the result has
/// more processes than the host's. Returns an error code for which the error handler has run.
int split_type(const Split& split, MPI_Comm* result, bool& grown);

}  // namespace osc
