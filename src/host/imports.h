// The functions that the host MPI, or all libraries, import from other libraries. Replacing an import changes the calls
// of the importing library alone, and exports no name.
#pragma once

namespace osc::host {

/// The function `name` that the host's calls reach; null if the host does not import it. Thread-safe.
void* exported_to_host(const char* name);

/// Redirects the host's calls of `name` to `by`; false if the host does not import `name` or its table cannot be
/// written. Calls of this function must not overlap.
bool replace_import(const char* name, void* by);

/// Redirects the calls of `name` of the program and of all loaded libraries, except libosc, the C library and the
/// loader. Calls of this function must not overlap.
void replace_all_imports(const char* name, void* by);

}  // namespace osc::host
