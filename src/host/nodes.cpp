// Asks the host for nodes, and the environment for simulated ones.
#include "host/nodes.h"

#include <cstdlib>
#include <cstring>
#include <string>

#include "host/host.h"

namespace osc::host {
namespace {

// The value of a variable of MPICH, which has three prefixes; null if it is not set.
const char* variable(const char* name) {
    for (const char* prefix : {"MPIR_CVAR_", "MPICH_", "MPIR_PARAM_"})
        if (const char* text = std::getenv((std::string(prefix) + name).c_str()); text != nullptr) return text;
    return nullptr;
}

bool is_on(const char* name) {
    const char* text = variable(name);
    if (text == nullptr) return false;
    for (const char* off : {"", "0", "no", "NO", "false", "FALSE", "off", "OFF"})
        if (std::strcmp(text, off) == 0) return false;
    return true;
}

bool is_above_one(const char* name) {
    const char* text = variable(name);
    return text != nullptr && std::atoi(text) > 1;
}

}  // namespace

int least(MPI_Comm comm, int mine, int& result) {
    MPI_Request request = MPI_REQUEST_NULL;
    const int error = real().Iallreduce(&mine, &result, 1, MPI_INT, MPI_MIN, comm, &request);
    return error == MPI_SUCCESS ? wait(request) : error;
}

int node_of(MPI_Comm comm, int rank, bool alone) {
    MPI_Comm node = MPI_COMM_NULL;
    const int type = alone ? MPI_UNDEFINED : MPI_COMM_TYPE_SHARED;
    if (real().Comm_split_type(comm, type, 0, MPI_INFO_NULL, &node) != MPI_SUCCESS) return -1;
    if (node == MPI_COMM_NULL) return rank;
    int first = rank;
    const int error = least(node, rank, first);
    real().Comm_free(&node);
    return error == MPI_SUCCESS ? first : -1;
}

bool nodes_made_up() {
    static const bool kMadeUp = is_above_one("NUM_CLIQUES") || is_above_one("NUM_CLIQUE") ||
                                is_on("ODD_EVEN_CLIQUES") || is_on("EVEN_ODD_CLIQUES") || is_on("NOLOCAL") ||
                                is_on("NO_LOCAL");
    return kMadeUp;
}

}  // namespace osc::host
