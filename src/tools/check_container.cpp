// The boundaries around the process: namespaces, containers, control groups, seccomp; and its processors.
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/control_groups.h"
#include "base/options.h"
#include "tools/check.h"

namespace osc::tools {
namespace {

// The namespaces that the kernel starts with (include/linux/proc_ns.h). The first network namespace has no fixed
// number.
constexpr const char* kFirstPid = "pid:[4026531836]";
constexpr const char* kFirstUser = "user:[4026531837]";

std::string namespace_of(const char* kind) {
    char text[64] = "";
    const std::string path = std::string("/proc/self/ns/") + kind;
    return ::readlink(path.c_str(), text, sizeof text - 1) > 0 ? text : "hidden";
}

// The sign of a container, or "".
std::string container() {
    if (::access("/.dockerenv", F_OK) == 0) return "/.dockerenv";
    if (::access("/run/.containerenv", F_OK) == 0) return "/run/.containerenv";
    for (const char* variable : {"APPTAINER_CONTAINER", "SINGULARITY_CONTAINER", "container"})
        if (const char* value = std::getenv(variable); value != nullptr && *value != '\0') return variable;
    std::ifstream groups("/proc/self/cgroup");
    std::string line;
    while (std::getline(groups, line))
        for (const char* word : {"docker", "kubepods", "containerd", "libpod", "lxc"})
            if (line.find(word) != line.npos) return "/proc/self/cgroup";
    return "";
}

// A field of /proc/self/status.
std::string status_of(const std::string& field) {
    std::ifstream file("/proc/self/status");
    std::string line;
    while (std::getline(file, line))
        if (line.starts_with(field + ":")) return line.substr(line.find_first_not_of(" \t", field.size() + 1));
    return "";
}

// The memory limit of the process's control group (version 2), or of the first group above it that has one.
std::string memory_limit() {
    for (const base::ControlGroup& group : base::control_groups("memory")) {
        std::string found = group.unified ? line_of(group.folder + "/memory.max") : "";
        if (!found.empty() && !found.starts_with("max")) return found;
    }
    return "";
}

}  // namespace

void check_options(Findings& findings) {
    for (const base::UnknownOption& unknown : base::unknown_options())
        add_problem(findings, "options", "unknown option " + unknown.name, unknown.remedy);
}

void check_container(Findings& findings) {
    const nlohmann::json data = {{"pid", namespace_of("pid")},
                                 {"user", namespace_of("user")},
                                 {"net", namespace_of("net")},
                                 {"seccomp", status_of("Seccomp")}};
    const bool pid_apart = data["pid"] != kFirstPid;
    const bool user_apart = data["user"] != kFirstUser;
    if (pid_apart || user_apart)
        add_note(findings, "namespaces",
                 std::string("in ") + (pid_apart ? "a PID namespace" : "a user namespace") +
                     (pid_apart && user_apart ? " and a user namespace" : "") + " of its own",
                 "no matter if all processes of the node share it; else share the PID or the network namespace "
                 "(--pid=host, --network=host)",
                 data);
    else
        add_ok(findings, "namespaces", "the machine's own PID and user namespace", data);
    const std::string sign = container();
    if (sign.empty())
        add_ok(findings, "container", "none found");
    else
        add_note(findings, "container", "inside a container (" + sign + ")",
                 "best is one container for each node with all its ranks inside; docs/TROUBLESHOOTING.md, Containers",
                 {{"sign", sign}});
    if (const std::string limit = memory_limit(); !limit.empty())
        add_note(findings, "memory_limit",
                 "the control group has " + std::to_string(std::strtoull(limit.c_str(), nullptr, 10) >> 20) + " MiB",
                 "windows count against it at the first touch; beyond it the kernel kills a process",
                 {{"bytes", std::strtoull(limit.c_str(), nullptr, 10)}});
}

void check_cores(Findings& findings) {
    cpu_set_t set;
    CPU_ZERO(&set);
    ::sched_getaffinity(0, sizeof set, &set);
    const int mine = CPU_COUNT(&set);
    const long all = ::sysconf(_SC_NPROCESSORS_ONLN);
    std::string list;
    for (int core = 0; core < CPU_SETSIZE; ++core)
        if (CPU_ISSET(core, &set)) list += (list.empty() ? "" : ",") + std::to_string(core);
    nlohmann::json data = {{"cores", mine}, {"online", all}, {"list", list}};
    const std::string text = "may run on " + std::to_string(mine) + " of " + std::to_string(all) + " cores";
    if (mine == 1 && all > 1)
        add_note(
            findings, "cores", text + " (core " + list + ")",
            "the threads that serve other processes share that core with the program; bind ranks to two cores where "
            "targets compute",
            data);
    else
        add_ok(findings, "cores", text, data);
    const std::vector<base::CpuQuota> quotas = base::cpu_quotas();
    if (quotas.empty()) return;
    const double quota = static_cast<double>(quotas[0].milli_cores) / 1000;
    char cores[32];
    std::snprintf(cores, sizeof cores, "%.2f", quota);
    data = {{"cores", quota}};
    const std::string allowed = std::string("the control group may use ") + cores + " cores";
    if (quota < mine)
        add_problem(
            findings, "cpu_quota", allowed + " of " + std::to_string(mine),
            "a process that polls is stopped when the quota is used up; raise it (Docker: --cpus), or run fewer ranks",
            data);
    else
        add_ok(findings, "cpu_quota", allowed, data);
}

}  // namespace osc::tools
