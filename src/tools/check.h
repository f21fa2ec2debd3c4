// The health check of osc_info: what libosc would meet on this machine, and between the machines of a job.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/host_mpi.h"

namespace osc::tools {

enum class State {
    Ok,
    Note,     // a fact that matters in some cases; the advice says in which
    Problem,  // libosc, or the host MPI, fails or is slow
};

/// One result of a check.
struct Finding {
    std::string check;  // the check's name, as in docs/TROUBLESHOOTING.md
    State state = State::Ok;
    std::string text;                                // one line
    std::string advice;                              // one line; "" for State::Ok
    nlohmann::json data = nlohmann::json::object();  // figures, with their units in the names
};
using Findings = std::vector<Finding>;

void add_ok(Findings& findings, const char* check, std::string text, nlohmann::json data = nlohmann::json::object());
void add_note(Findings& findings, const char* check, std::string text, std::string advice,
              nlohmann::json data = nlohmann::json::object());
void add_problem(Findings& findings, const char* check, std::string text, std::string advice,
                 nlohmann::json data = nlohmann::json::object());

/// The OSC_ variables of the environment: unknown ones.
void check_options(Findings& findings);
/// memfd, other processes' descriptors, process_vm_*, /dev/shm, huge pages. Forks: call it before other threads exist.
void check_memory(Findings& findings);
/// RLIMIT_MEMLOCK and RLIMIT_NOFILE.
void check_limits(Findings& findings);
/// Namespaces, container, seccomp, the control group's memory.
void check_container(Findings& findings);
/// Affinity and the control group's processor quota.
void check_cores(Findings& findings);
/// The interface, and each provider of libfabric with its probed abilities and the time of a message within this
/// process. `folder`: where libosc_ofi.so lies.
void check_network(Findings& findings, const std::filesystem::path& folder);

/// The results of one process of a job.
struct ProcessResult {
    int node = 0;         // the lowest rank that shares memory with this one through libosc
    std::string machine;  // the host's name
    Findings findings;
};
/// A measured way between two nodes.
struct Way {
    int from = 0;  // ranks
    int to = 0;
    double ns = 0;  // median of a put of 8 bytes with its flush; below 0: data did not arrive
};
struct JobResult {
    std::vector<ProcessResult> processes;  // by rank
    std::vector<Way> ways;
    Findings findings;  // about the job as a whole
};

/// Collective over a started job: checks windows and the ways between processes. All processes' results at rank 0.
JobResult check_job(HostMpi& mpi, Findings mine);

/// Prints the report on stdout; the number of problems.
int print_report(const JobResult& job, bool as_json);

/// The name of this machine, as ProcessResult has it.
std::string host_name();

/// The first line of a file, or "".
std::string line_of(const std::string& path);

}  // namespace osc::tools
