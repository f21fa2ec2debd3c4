// The health check of osc_info: what libosc would meet on this machine, and between the machines of a job.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tools/host_mpi.h"

namespace osc::tools {

/// The providers that libosc chooses among.
inline constexpr const char* kProviders[] = {
#define OSC_PROVIDER(name, quirks, direct) name,
#include "fabric/providers.def"
};

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
NLOHMANN_JSON_SERIALIZE_ENUM(State, {{State::Ok, "ok"}, {State::Note, "note"}, {State::Problem, "problem"}})
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Finding, check, state, text, advice, data)

/// Adds a finding, whose advice a State::Ok does not have.
inline void add(Findings& findings, const char* check, State state, std::string text, std::string advice = "",
                nlohmann::json data = nlohmann::json::object()) {
    findings.push_back({check, state, std::move(text), state == State::Ok ? "" : std::move(advice), std::move(data)});
}

/// The OSC_ variables of the environment: unknown ones.
void check_options(Findings& findings);
/// memfd, other processes' descriptors, process_vm_*, XPMEM, /dev/shm, huge pages. Forks: call it before other threads
/// exist.
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
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ProcessResult, node, machine, findings)
/// A measured way between two nodes.
struct Way {
    int from = 0;  // ranks
    int to = 0;
    double ns = 0;  // median of a put of 8 bytes with its flush; below 0: data did not arrive
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Way, from, to, ns)
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

/// The folder of libosc's libraries: beside the program's folder in a build, else where the installation puts them.
std::filesystem::path library_folder();

/// The file that a command names, which PATH may find.
std::string in_path(const std::string& program);

/// What a command prints on both streams, with one argument or none (null), and with `variables` in its environment.
std::string output_of(const std::string& command, const char* argument,
                      const std::map<std::string, std::string>& variables = {});

/// Whether libosc takes effect in a program that this environment starts, and if not, why. `program`: a path, or a name
/// that PATH finds. `preload`: a value of LD_PRELOAD instead of the environment's, if not empty. A finding about a
/// library that the loader does not find has it in data["missing"].
void check_program(Findings& findings, const std::string& program, const std::string& preload = {});

// The commands of osc_info.

/// Checks this machine, and the job if a launcher started this process, and prints a report (rank 0 only). The exit
/// status: 0 without problems, 1 with problems.
int check_main(bool as_json);

/// Prints the findings of check_program. The exit status: 0 if libosc takes effect, 1 with problems.
int check_program_main(const char* program, bool as_json);

/// Prints the tables of docs/NETWORK.md from what libfabric says of its providers here, and from libosc's probes of
/// them. The exit status: 1 if libfabric cannot be loaded.
int print_providers();

}  // namespace osc::tools
