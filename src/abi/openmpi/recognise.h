// What tells that a library is Open MPI, and what libosc must know to stand aside. Needs no mpi.h.
#pragma once

namespace osc::abi::openmpi {

/// Open MPI's handles are addresses of its data; this one is MPI_COMM_WORLD.
inline constexpr const char* kWorld = "ompi_mpi_comm_world";

/// MPI_ERR_OTHER, also in the ABI of the MPI 5 standard.
inline constexpr int kErrOther = 16;

}  // namespace osc::abi::openmpi
