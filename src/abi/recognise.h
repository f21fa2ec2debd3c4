// Which library of libosc serves an MPI library. Every library of libosc and osc_info know all ABIs by this file alone.
// Needs no mpi.h.
#pragma once

namespace osc::abi {

/// MPI_ERR_OTHER, in all ABIs but MPICH's.
inline constexpr int kErrOther = 16;

/// The suffix of the library (kSuffix of its folder). `standard`: the MPI library has the ABI of the MPI 5 standard;
/// `defines`: whether it defines a symbol. No symbol is common to all libraries of MPICH's ABI and in no other.
template <class Defines>
const char* suffix_for(bool standard, Defines&& defines) {
    return standard ? "_abi" : defines("ompi_mpi_comm_world") ? "_ompi" : "";
}

}  // namespace osc::abi
