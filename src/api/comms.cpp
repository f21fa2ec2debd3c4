// The entry point that makes communicators of processes which share memory.
#include "api/serve.h"
#include "window/split.h"

namespace osc::entry {

int Comm_split_type(MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm* newcomm) {
    // The host reports errors, and splits intercommunicators.
    int inter = 0;
    if (comm == MPI_COMM_NULL || newcomm == nullptr)
        OSC_FORWARD(Comm_split_type, (comm, split_type, key, info, newcomm));
    if (const int error = host::real().Comm_test_inter(comm, &inter); error != MPI_SUCCESS) return error;
    if (inter != 0) OSC_FORWARD(Comm_split_type, (comm, split_type, key, info, newcomm));
    bool grown = false;
    const int error = osc::split_type({comm, split_type, key, info}, newcomm, grown);
    if (error != MPI_SUCCESS) return error;
    if (grown)
        count_served(Entry::Comm_split_type);
    else
        count_forwarded(Entry::Comm_split_type);
    return MPI_SUCCESS;
}

}  // namespace osc::entry
