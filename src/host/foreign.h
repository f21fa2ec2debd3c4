// Recognises MPI libraries with another ABI than libosc is built for, by functions and data that only they have. libosc
// reads none of their handles.
#pragma once

#include <string>

namespace osc::host {

/// The address of a symbol of the library, or null.
using Find = void* (*)(const char* symbol);

/// Whether the library has another ABI, that of the MPI 5 standard among them. Calls MPI_Abi_get_version of a library
/// that has it, which may be called at any time.
bool is_foreign(Find find);

/// Name, version and file of that library. Calls MPI_Get_library_version, which may be called at any time.
std::string describe(Find find);

}  // namespace osc::host
