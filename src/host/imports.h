// The functions that the host MPI imports from other libraries. Replacing one of its imports changes the host's own
// calls and no other library's, and exports no name.
#pragma once

namespace osc::host {

/// The function `name` that the host's calls reach; null if the host does not import it. Thread-safe.
void* exported_to_host(const char* name);

/// Redirects the host's calls of `name` to `by`; false if the host does not import `name` or its table cannot be
/// written. Calls of this function must not overlap.
bool replace_import(const char* name, void* by);

}  // namespace osc::host
