// The functions that the host MPI, or all libraries, import from other libraries. Replacing an import changes the calls
// of the importing library alone, and exports no name.
#pragma once

namespace osc::host {

/// The function `name` that the host's calls reach; null if the host does not import it. Thread-safe.
void* exported_to_host(const char* name);

/// Redirects the host's calls of `name` to `by`; false if the host does not import `name` or its table cannot be
/// written. Calls of this function must not overlap.
bool replace_import(const char* name, void* by);

/// The function that other libraries' calls of `name` reach; null if no library defines it. Thread-safe.
void* called_function(const char* name);

/// Redirects the calls of `name` of the program and of all loaded libraries, except libosc, the C library and the
/// loader, from `function` to `by`. Leaves calls that reach another function, and pointers to functions that a program
/// keeps in its data. Calls of this function must not overlap.
void replace_all_imports(const char* name, void* function, void* by);

}  // namespace osc::host
