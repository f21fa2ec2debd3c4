// Whether all processes of a communicator run libosc, with settings that agree. A process whose settings differ would
// enter other collectives than the rest, and the job would hang.
//
// Each process claims an abstract socket whose name has its rank by the launcher and its settings. It does so before
// MPI_Init returns, and the kernel frees the name with the process. So each process reads those of its node without
// communication, and all of them read the same. A process without a name lacks libosc only if the launcher's proxy has
// it as a child, with an MPI library, in this process's network namespace; otherwise nothing is known of it. Where a
// process of a communicator is unknown, as on another node, the processes exchange their settings before anything else.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <span>
#include <string>

namespace osc {

/// The settings that the processes of a window must share. Equal bytes are equal settings.
struct Settings {
    std::uint32_t version = 0;   // of libosc: 1,000,000 * major + 1,000 * minor + patch
    std::uint32_t switches = 0;  // bits of kSwitches; see settings.cpp
    std::int64_t fake_nodes = 0;
    bool operator==(const Settings&) const = default;

    /// Of this process.
    static Settings mine();
    /// Of a process without libosc.
    static Settings none() { return {}; }
    /// Of a process of which nothing is known.
    static Settings unknown() { return {~std::uint32_t{0}, 0, 0}; }
};

/// Claims this process's name, once it has found the host MPI; nothing without a launcher. Thread-safe.
void announce_settings();

/// Which ranks have which settings, as text: "ranks 0, 2-3: libosc 0.1.0; rank 1: no libosc". "" if those that are
/// known agree.
std::string difference(std::span<const Settings> by_rank);

/// The difference between the processes of a communicator, as far as this process knows it without communication; ""
/// if it knows of none. Processes of one node know the same.
std::string difference_in(MPI_Comm comm);

/// The same for all processes of a communicator, at its first window. Collective unless its processes are all known to
/// differ: a process without libosc on another node never enters the call, and after OSC_HANG_REPORT seconds one line
/// says so. A host error code, or MPI_ERR_NO_MEM on all processes if one of them has no memory for what follows.
int compare_settings(MPI_Comm comm, bool has_memory, std::string& differs);

/// Why the processes of the job cannot report together: the difference in MPI_COMM_WORLD, or what compare_settings()
/// has found, which all processes of that communicator know.
std::string difference_in_job();

/// The lowest rank of a communicator that is not known to lack libosc: it reports for all.
int reporter_in(MPI_Comm comm);

}  // namespace osc
