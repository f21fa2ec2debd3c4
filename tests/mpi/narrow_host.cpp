// libnarrow_host: loaded after libosc, it makes the host MPI take every OSC_TEST_NODE_RANKS (default 1) successive
// ranks of a communicator for a node of its own, as MPICH 5.0.2 with ch4:ucx takes every process for one in Debian
// forky.
#include <dlfcn.h>
#include <mpi.h>

#include <cstdlib>
#include <cstring>

namespace {

template <class Function>
Function next(const char* name) {
    return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

int ranks_of_a_node() {
    const char* text = std::getenv("OSC_TEST_NODE_RANKS");
    return text != nullptr && std::atoi(text) > 0 ? std::atoi(text) : 1;
}

// MPI_COMM_TYPE_SHARED, or its name as a resource.
bool is_shared_memory(int type, MPI_Info info) {
    if (type == MPI_COMM_TYPE_SHARED) return true;
    bool guided = false;
#ifdef MPI_COMM_TYPE_HW_GUIDED
    guided = type == MPI_COMM_TYPE_HW_GUIDED;
#endif
#ifdef MPI_COMM_TYPE_RESOURCE_GUIDED
    guided = guided || type == MPI_COMM_TYPE_RESOURCE_GUIDED;
#endif
    if (!guided || info == MPI_INFO_NULL) return false;
    static const auto info_get = next<decltype(&PMPI_Info_get)>("PMPI_Info_get");
    char text[64];
    int found = 0;
    info_get(info, "mpi_hw_resource_type", sizeof text - 1, text, &found);
    return found != 0 && std::strcmp(text, "mpi_shared_memory") == 0;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int PMPI_Comm_split_type(MPI_Comm comm, int type, int key,
                                                                           MPI_Info info, MPI_Comm* newcomm) {
    static const auto split_type = next<decltype(&PMPI_Comm_split_type)>("PMPI_Comm_split_type");
    static const auto split = next<decltype(&PMPI_Comm_split)>("PMPI_Comm_split");
    static const auto allreduce = next<decltype(&PMPI_Allreduce)>("PMPI_Allreduce");
    static const auto comm_rank = next<decltype(&PMPI_Comm_rank)>("PMPI_Comm_rank");
    static const auto set_info = next<decltype(&PMPI_Comm_set_info)>("PMPI_Comm_set_info");
    int rank = 0;
    if (const int error = comm_rank(comm, &rank); error != MPI_SUCCESS) return error;
    // Processes with MPI_UNDEFINED do not know the type that the others give.
    const int mine = is_shared_memory(type, info) ? 1 : 0;
    int shared = 0;
    if (const int error = allreduce(&mine, &shared, 1, MPI_INT, MPI_MAX, comm); error != MPI_SUCCESS) return error;
    if (shared == 0) return split_type(comm, type, key, info, newcomm);
    const int color = type == MPI_UNDEFINED ? MPI_UNDEFINED : rank / ranks_of_a_node();
    const int error = split(comm, color, key, newcomm);
    if (error != MPI_SUCCESS || *newcomm == MPI_COMM_NULL || info == MPI_INFO_NULL) return error;
    return set_info(*newcomm, info);
}
