// How processes find those of their host, in a communicator of any size.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <span>

namespace osc {

/// Tags of libosc's own communicators. Open MPI 4.1 makes a communicator by messages with the caller's tag, which
/// another process may take for a question.
enum OwnTag : int { kQuestion, kAnswer, kParts, kMakesMates };

/// Finds the processes of `comm` that give the same number. `found` has room for a number more than `comm` has
/// processes: first how many they are, then their ranks, ascending; first 0 if a process has no memory for the answer.
/// Collective over `comm`, which is libosc's own, and for which it is called once: a question of a second call may
/// arrive in the first one of another process. A host error code. The time grows with the logarithm of the processes
/// and with those that it finds: each asks one process that the number chooses, and a barrier that none enters before
/// its question is received says that all have asked (Hoefler et al., Scalable communication protocols for dynamic
/// sparse data exchange, PPoPP 2010).
int find_equals(MPI_Comm comm, std::uint64_t number, std::span<int> found);

}  // namespace osc
