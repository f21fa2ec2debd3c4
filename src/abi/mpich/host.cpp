// What MPICH and the libraries of its ABI do in their own ways: requests, windows, simulated nodes.
// Build: start
#include <cstdlib>
#include <cstring>
#include <string>

#include "abi/abi.h"
#include "abi/openmpi/recognise.h"

namespace osc::abi {

const char* const kName = "MPICH";

// No symbol is common to all libraries of MPICH's ABI and in no other.
bool is_host(void* (*find)(const char* symbol)) {
    return find(openmpi::kWorld) == nullptr;
}

int make_window(MPI_Comm self, MPI_Win* window) {
    static const auto create = reinterpret_cast<decltype(&::MPI_Win_create)>(host::host_symbol("PMPI_Win_create"));
    return create(nullptr, 0, 1, MPI_INFO_NULL, self, window);
}

// MPICH from 3.4 on (src/mpi/request/mpir_request.c) keeps one builtin object per kind of request for sends to
// MPI_PROC_NULL: it counts no references of it, and MPI_Wait and MPI_Request_free leave it as it is. Such a handle says
// so in its two highest bits.
bool is_constant_request(MPI_Request request) {
    return handle_key(request) >> 30 == 1;
}

// MPICH (by src/mpi/request of 4.0.2) calls the poll function in MPI_Wait, in the calls for some or any, and in all
// tests; it calls the wait function in MPI_Waitall, for one request at a time. It holds no lock meanwhile. The status
// that it passes may be invalid. In MPI_Wait and MPI_Waitall only these functions drive the host, which may have to
// send a peer the rest of a message (invariant I3).
namespace {
auto polled_start() {
    static const auto start =
        reinterpret_cast<decltype(&::MPIX_Grequest_start)>(host::host_symbol("PMPIX_Grequest_start"));
    return start;
}
}  // namespace

bool can_poll_requests() {
    return polled_start() != nullptr;
}

int start_polled_request(const PolledRequest& functions, void* state, MPI_Request* request) {
    return polled_start()(functions.query, functions.free, functions.cancel, functions.poll, functions.wait, state,
                          request);
}

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

// MPICH's variables for its own tests.
bool simulates_nodes() {
    static const bool kSimulates = is_above_one("NUM_CLIQUES") || is_above_one("NUM_CLIQUE") ||
                                   is_on("ODD_EVEN_CLIQUES") || is_on("EVEN_ODD_CLIQUES") || is_on("NOLOCAL") ||
                                   is_on("NO_LOCAL");
    return kSimulates;
}

}  // namespace osc::abi
