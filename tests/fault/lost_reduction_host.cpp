// Lies between libosc and the host, and loses the end of one reduction: for a process that waits it never comes, a
// second process has contributed and dies, and for all others it ends. The host's own reductions can end so when a
// process dies.
#include <dlfcn.h>
#include <mpi.h>
#include <unistd.h>

#include <csignal>

#include "lost_reduction.h"

namespace {

fault::Part g_part = fault::Part::None;
int g_left = 0;
int g_nothing = 0;

}  // namespace

extern "C" void fault_lose_reduction(fault::Part part, int number) {
    g_part = part;
    g_left = number;
}

extern "C" int PMPI_Iallreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                               MPI_Request* request) {
    static const auto real = reinterpret_cast<decltype(&PMPI_Iallreduce)>(::dlsym(RTLD_NEXT, "PMPI_Iallreduce"));
    const int error = real(send, receive, count, type, op, comm, request);
    if (error != MPI_SUCCESS || g_part == fault::Part::None || --g_left != 0) return error;
    PMPI_Wait(request, MPI_STATUS_IGNORE);
    if (g_part == fault::Part::Dies) {
        ::usleep(500000);  // until all others have the result
        ::kill(::getpid(), SIGKILL);
    }
    int rank = 0;
    PMPI_Comm_rank(comm, &rank);
    return PMPI_Irecv(&g_nothing, 1, MPI_INT, rank, 32000, comm, request);
}
