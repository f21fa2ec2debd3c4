// MPI_Comm_split_type for shared memory: the host's answer, or communicators of all processes that libosc lets share
// memory where these are more.
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

/// Collective over the communicator, which connects processes of one group; all of them call it, whatever their split
/// type. `grown`: the result holds more processes than the host's answer does. An error code, raised already.
int split_type(const Split& split, MPI_Comm* result, bool& grown);

}  // namespace osc
