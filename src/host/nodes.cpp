// Asks the host for nodes.
// Build: start
#include "host/nodes.h"

#include "host/host.h"

namespace osc::host {

int least(MPI_Comm comm, int mine, int& result) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int error = real().Iallreduce(&mine, &result, 1, MPI_INT, MPI_MIN, comm, &request);
    return error == MPI_SUCCESS ? wait(request) : error;
}

int node_of(MPI_Comm comm, int rank) {
    MPI_Comm node = MPI_COMM_NULL;
    if (real().Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node) != MPI_SUCCESS) return -1;
    int first = rank;
    const int error = least(node, rank, first);
    real().Comm_free(&node);
    return error == MPI_SUCCESS ? first : -1;
}

}  // namespace osc::host
