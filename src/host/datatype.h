// From the host's datatype handles to flattened layouts. Predefined types cost a table look-up; derived ones are
// flattened once and found again without a lock. Owns the cache, and the host's attribute key whose callback runs when
// a datatype is freed.
#pragma once

#include <mpi.h>

#include "abi/abi.h"
#include "host/handle_table.h"
#include "op/type_info.h"

namespace osc::host {

using op::TypeInfo;
using op::TypeRef;

/// Makes the cache ready; before the first type_info() of a derived type, after the host's MPI_Init. `self`: any
/// communicator of this process whose error handler is MPI_ERRORS_RETURN, valid until release_types(). MPI_Pack of no
/// elements on `self` replaces a query for "is committed", which MPI does not have. Thread-safe; calls after the first
/// do nothing. Returns an MPI error code.
int init_types(MPI_Comm self) noexcept;

/// Frees the attribute key and the cache, at MPI_Finalize before the host's. References stay valid; type_info() then
/// serves predefined types only, until init_types() is called again. No other call may run at the same time.
void release_types() noexcept;

namespace detail {

extern HandleTable<const TypeInfo> g_types;

/// Enters the predefined types of the standard and of the host; calls after the first do nothing. One thread at a time.
void enter_predefined();

/// The slow path: flattens or finds the attribute. Null with an MPI error class in `error`.
const TypeInfo* resolve(MPI_Datatype type, int& error) noexcept;

/// Flattens a datatype from its constructor's arguments. Throws std::bad_alloc, std::length_error if it has
/// too many irregular blocks, std::overflow_error for data outside every address space (op::max_displacement), and
/// std::invalid_argument for a constructor or predefined type that libosc does not know.
op::Layout flatten(MPI_Datatype type);

}  // namespace detail

/// The description of a committed datatype; valid while the caller's handle is, longer through a TypeRef. Null if
/// the handle is MPI_DATATYPE_NULL or not committed (MPI_ERR_TYPE), libosc cannot describe it
/// (MPI_ERR_UNSUPPORTED_OPERATION), its data lie outside every address space (MPI_ERR_COUNT) or memory is short
/// (MPI_ERR_NO_MEM); `error` then receives the class. Thread-safe;
/// the first call for a derived type calls the host.
inline const TypeInfo* type_info(MPI_Datatype type, int* error = nullptr) noexcept {
    if (const TypeInfo* info = abi::predefined(type)) [[likely]]
        return info;
    if (const TypeInfo* info = detail::g_types.find(abi::handle_key(type))) [[likely]]
        return info;
    int failure = MPI_SUCCESS;
    const TypeInfo* info = detail::resolve(type, failure);
    if (!info && error) *error = failure;
    return info;
}

}  // namespace osc::host
