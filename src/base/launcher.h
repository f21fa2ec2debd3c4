// The launcher's description of the job, from the environment: Hydra (mpiexec of MPICH), Slurm, PMIx and Open MPI. For
// decisions without MPI, before MPI_Init and without communication.
#pragma once

#include <string>

namespace osc::base::launcher {

/// The number of this process in the job; -1 without a launcher.
int rank();

/// The number of processes of the job; 0 if the launcher does not say.
int size();

/// The number of this process among those of its node; -1 if the launcher does not say.
int rank_on_node();

/// The number of the job's processes on this node; 0 if the launcher does not say.
int size_on_node();

/// Whether the launcher says that all processes of the job are on this node.
bool is_on_one_node();

/// Whether Hydra started this process.
bool is_hydra();

/// Whether Open MPI's launcher started this process.
bool is_open_mpi();

/// A name of the job that all its processes on this node compute, and no other job of the user; "" if there is none.
std::string job_on_node();

/// The process of this node that Hydra's proxy started with this number; 0 if there is none, or under another launcher.
long process_of(int rank);

}  // namespace osc::base::launcher
