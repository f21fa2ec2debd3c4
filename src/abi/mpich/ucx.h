// The functions that MPICH over UCX imports.
#pragma once

#include "abi/abi.h"
#include "base/imports.h"

namespace osc::abi {

/// The function `name` that the host's calls reach; null if the host does not import it. Thread-safe.
inline void* imported(const char* name) {
    return base::imported_by(host::host_symbol("PMPI_Initialized"), name);
}

/// Redirects the host's calls of `name`. Calls of this function must not overlap.
inline bool redirect(const char* name, void* by) {
    return base::replace_import(host::host_symbol("PMPI_Initialized"), name, by);
}

/// ucp_worker_progress as the host calls it, with the hook. Only if the host imports that function.
unsigned progress_of(void* worker);

}  // namespace osc::abi
