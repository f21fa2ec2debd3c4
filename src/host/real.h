// The host MPI's own functions. This room is the only one that calls the host, always by the addresses found here:
// the names MPI_* and PMPI_* lead to libosc itself in a process that has it preloaded.
#pragma once

#include <mpi.h>

#include <string>

#include "abi/abi.h"
#include "base/assert.h"
#include "base/helper_thread.h"

namespace osc::host {

/// The host's PMPI functions. A member is null if the host does not have the function.
struct Real {
#define OSC_ENTRY(kind, name, parameters, arguments) int(*name) parameters = nullptr;
#include "api/entries.def"
#define OSC_REAL(name) decltype(&::PMPI_##name) name = nullptr;
#define OSC_REAL_TYPED(name, parameters) int(*name) parameters = nullptr;
#include "host/real.def"
};

namespace detail {
extern Real g_real;
}

/// The table; find_host() fills it if it returns Host::Ours.
inline const Real& real() {
    OSC_ASSERT(!base::t_helper_thread);
    return detail::g_real;
}

/// The MPI library that the process has loaded.
enum class Host {
    None,
    Ours,     // of the ABI that libosc is built for: libosc works over it
    Foreign,  // of another ABI: libosc passes calls on, and reads no handle
};

/// Looks the host up behind libosc in the search order, or among the libraries that the process has loaded since (a
/// language binding that was opened at run time). Thread-safe; the answer stays once it is not Host::None.
Host find_host();

/// The suffix of the library of libosc that serves the host. Valid after find_host() has found one.
const char* suffix_of_host();

/// A text with the host's name, version and file. Valid after find_host() has found a host.
std::string describe_host();

/// The C library's dlsym(), because libosc exports one of its own (api/dlsym.cpp). Thread-safe.
using Dlsym = void* (*)(void* library, const char* name) noexcept;
Dlsym loader_dlsym() noexcept;

/// The next definition of `symbol` behind libosc, a tool's or the host's, or null.
using NextSymbol = void*(const char* symbol);
NextSymbol next_symbol;

/// Makes `next` find the definitions behind libosc, for a library that is not in the program's search order itself.
/// Before the first call of this file.
void search_behind(NextSymbol* next);

/// Whether `address` lies in the library that holds the host's PMPI functions: false for a tool's wrapper, and before
/// find_host() has found one.
bool in_host_library(const void* address);

}  // namespace osc::host
