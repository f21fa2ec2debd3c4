// The type signature of a datatype: its predefined types in order (MPI 4.1 section 5.1.1), for the usage checker.
#pragma once

#include <mpi.h>

#include <optional>
#include <string>

namespace osc::host {

/// `count` elements of a committed datatype.
struct TypedCount {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Count count = 0;
};

/// The first element at which the signatures of the data that moves differ, as a text: "element 3 is a double in the
/// origin datatype and a float in the target's", where `which` is "origin" or "result". The data are as many elements
/// as the shorter side has; MPI_PACKED matches everything. No text: they match, or are too long to compare (65,536
/// changes of type). Predefined types with one representation count as equal (MPI_LONG and MPI_INT64_T). Calls the host
/// for datatypes of several predefined types.
std::optional<std::string> find_mismatch(const char* which, const TypedCount& origin, const TypedCount& target);

}  // namespace osc::host
