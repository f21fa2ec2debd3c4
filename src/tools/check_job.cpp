// The checks of a whole job: which processes share memory, what a put between nodes takes, and in what the processes
// differ. Each process learns all results, and rank 0 reports them.
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <sstream>

#include "base/core_sharing.h"
#include "base/log.h"
#include "base/random.h"
#include "local/cma.h"
#include "tools/check.h"

namespace osc::tools {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

constexpr int kPuts = 200;             // of which the median counts, after a tenth as many to warm up
constexpr std::size_t kAllPairs = 32;  // nodes up to which each pair is measured; beyond, at distances of powers of two

// Every process's description, by rank.
std::vector<json> exchange(HostMpi& mpi, const json& mine) {
    std::vector<json> all;
    for (const std::string& text : mpi.exchange(mine.dump(-1, ' ', false, json::error_handler_t::replace)))
        all.push_back(json::parse(text));
    return all;
}

std::string settings() {
    std::vector<std::string> found;
    for (char** entry = environ; *entry != nullptr; ++entry)
        if (std::strncmp(*entry, "OSC_", 4) == 0) found.emplace_back(*entry);
    std::sort(found.begin(), found.end());
    std::string text;
    for (const std::string& setting : found)
        text += (text.empty() ? "" : " ") + setting;
    return text;
}

// The provider that check_network() found; "" on processes that did not look.
std::string provider_of(const Findings& findings) {
    for (const Finding& finding : findings)
        if (finding.check == "network") return finding.data.value("provider", "none");
    return "";
}

// process_vm_* to the job's other processes on this machine.
void check_process_vm(HostMpi& mpi, Findings& findings) {
    cma::allow_peers();
    static const std::uint64_t token = base::random64();
    const auto all = exchange(mpi, {{"machine", host_name()},
                                    {"process", ::getpid()},
                                    {"address", reinterpret_cast<std::uint64_t>(&token)},
                                    {"token", token}});
    const json& mine = all[static_cast<std::size_t>(mpi.rank())]["machine"];
    std::vector<int> out_of_reach;
    int peers = 0;
    for (int rank = 0; rank < mpi.size(); ++rank) {
        const json& peer = all[static_cast<std::size_t>(rank)];
        if (rank == mpi.rank() || peer["machine"] != mine) continue;
        ++peers;
        if (!cma::reachable(peer["process"].get<pid_t>(), peer["address"], peer["token"])) out_of_reach.push_back(rank);
    }
    mpi.barrier();  // until all have tried, each process must live
    if (!out_of_reach.empty())
        add(findings, "process_vm_ranks", State::Problem,
            "no access to the private memory of " + base::text_of_ranks(out_of_reach) + " of this machine",
            "windows over private memory are slow: allow process_vm_readv, share the PID namespace, or use "
            "MPI_Win_allocate");
    else if (peers > 0)
        add(findings, "process_vm_ranks", State::Ok, "the ranks of the machine access each other's private memory");
}

// The median time in ns of a put with its flush to `target`; below 0 if the data is not there afterwards.
double put_time(HostMpi& mpi, int target) {
    const std::size_t offset = 8 * static_cast<std::size_t>(mpi.rank());
    std::vector<double> times;
    std::uint64_t value = 0;
    for (int i = -kPuts / 10; i < kPuts; ++i) {
        value = (std::uint64_t(mpi.rank() + 1) << 32) + static_cast<std::uint64_t>(i + kPuts);
        const Clock::time_point begin = Clock::now();
        if (!mpi.put(target, offset, &value, sizeof value)) return -1;
        if (i >= 0) times.push_back(std::chrono::duration<double, std::nano>(Clock::now() - begin).count());
    }
    std::uint64_t found = 0;
    if (!mpi.get(target, offset, &found, sizeof found) || found != value) return -1;
    std::nth_element(times.begin(), times.begin() + kPuts / 2, times.end());
    return times[kPuts / 2];
}

// Every process puts to every other one of its node; the node's first one says what it takes.
void check_node(HostMpi& mpi, const std::vector<int>& node, Findings& findings) {
    if (node.size() < 2) return;
    std::vector<int> failed;
    double ns = 0;
    for (const int rank : node) {
        if (rank == mpi.rank()) continue;
        const double found = put_time(mpi, rank);
        if (found < 0) failed.push_back(rank);
        ns = std::max(ns, found);
    }
    if (!failed.empty()) {
        add(findings, "shared_memory", State::Problem,
            "puts to " + base::text_of_ranks(failed) + " of the node do not arrive",
            "a defect of libosc or of the machine's memory: report it with this output");
    } else if (node.front() == mpi.rank()) {
        add(findings, "shared_memory", State::Ok,
            base::text_of_ranks(node) + " share memory; a put with its flush takes " +
                std::to_string(std::llround(ns)) + " ns",
            "", {{"put_flush_ns", ns}, {"ranks", node}});
    }
}

// The nodes at whose distance each node measures.
std::vector<std::size_t> distances(std::size_t nodes) {
    std::vector<std::size_t> found;
    for (std::size_t d = 1; d <= nodes / 2; d = nodes <= kAllPairs ? d + 1 : 2 * d)
        found.push_back(d);
    return found;
}

// The first processes of the nodes measure puts to each other, those at one distance in two turns, so that hardly any
// node is origin and target at the same time. Targets wait in a barrier of the host meanwhile.
void check_ways(HostMpi& mpi, const std::vector<int>& leaders, std::vector<Way>& ways) {
    const auto me = std::find(leaders.begin(), leaders.end(), mpi.rank());
    const auto mine = static_cast<std::size_t>(me - leaders.begin());
    for (const std::size_t distance : distances(leaders.size()))
        for (std::size_t turn = 0; turn < 2; ++turn) {
            const bool twice = 2 * distance == leaders.size() && mine >= distance;  // the pair's other one measures
            if (me != leaders.end() && !twice && mine / distance % 2 == turn) {
                const int target = leaders[(mine + distance) % leaders.size()];
                ways.push_back({mpi.rank(), target, put_time(mpi, target)});
            }
            mpi.barrier();
        }
}

// Values that ought to be the same on all processes that have them.
void compare(const std::vector<json>& all, const char* key, const char* check, const std::string& what,
             const std::string& advice, Findings& findings) {
    std::map<std::string, std::vector<int>> by_value;
    for (std::size_t rank = 0; rank < all.size(); ++rank)
        if (const std::string value = all[rank][key]; key != std::string("provider") || !value.empty())
            by_value[value].push_back(static_cast<int>(rank));
    if (by_value.size() < 2) return;
    std::string text = what;
    for (const auto& [value, ranks] : by_value)
        text += "; " + base::text_of_ranks(ranks) + ": " + (value.empty() ? "none" : value);
    add(findings, check, State::Problem, text, advice);
}

// Processes of a machine that share cores, by the rule that decides how libosc waits.
void compare_cores(const JobResult& job, Findings& findings) {
    std::map<std::string, std::vector<base::CoreAllowance>> machines;
    for (const ProcessResult& process : job.processes)
        for (const Finding& finding : process.findings) {
            if (finding.check != "cores") continue;
            base::CoreAllowance& allowance = machines[process.machine].emplace_back();
            std::istringstream list(finding.data["list"].get<std::string>());
            for (std::string text; std::getline(list, text, ',');) {
                const std::size_t core = std::stoul(text);
                allowance.mask[core / 64] |= std::uint64_t{1} << core % 64;
            }
        }
    for (const auto& [name, processes] : machines)
        if (const base::CoreSharing sharing = base::core_sharing(processes); sharing.crowded())
            add(findings, "shared_cores", State::Note, sharing.text() + " of " + name,
                "libosc yields and sleeps, the host's barriers do not: set MPIR_CVAR_POLLS_BEFORE_YIELD=1 for "
                "MPICH, or bind ranks to more cores",
                {{"machine", name}, {"ranks", sharing.processes}, {"cores", sharing.milli_cores / 1000}});
}

}  // namespace

std::string host_name() {
    char name[256] = "";
    ::gethostname(name, sizeof name - 1);
    return name;
}

JobResult check_job(HostMpi& mpi, Findings mine) {
    JobResult job;
    std::vector<Way> ways;
    std::string why;
    check_process_vm(mpi, mine);
    const std::string provider = provider_of(mine);
    int node = mpi.rank();
    const bool opened = mpi.open_window(8 * static_cast<std::size_t>(mpi.size()), why);
    if (!opened) {
        add(job.findings, "windows", State::Problem, "MPI_Win_allocate over all processes failed: " + why,
            "libosc's line on stderr has the reason; docs/TROUBLESHOOTING.md, \"It falls back\"");
    } else if (!mpi.is_served()) {
        add(job.findings, "windows", State::Problem, "the host MPI serves the windows of this job, not libosc",
            "libosc's line on stderr has the reason; unset OSC_DISABLE; libosc needs a library for the ABI of the MPI "
            "library");
    } else {
        std::vector<int> local;
        for (int rank = 0; rank < mpi.size(); ++rank)
            if (rank == mpi.rank() || mpi.shares_memory_with(rank)) local.push_back(rank);
        node = local.front();
        check_node(mpi, local, mine);
        mpi.barrier();
        std::vector<int> leaders;
        for (const json& one : exchange(mpi, node))
            leaders.push_back(one);
        std::sort(leaders.begin(), leaders.end());
        leaders.erase(std::unique(leaders.begin(), leaders.end()), leaders.end());
        check_ways(mpi, leaders, ways);
    }
    if (opened) mpi.close_window();
    const auto all = exchange(mpi, {{"process", ProcessResult{node, host_name(), std::move(mine)}},
                                    {"ways", ways},
                                    {"settings", settings()},
                                    {"provider", provider}});
    for (const json& one : all) {
        job.processes.push_back(one["process"].get<ProcessResult>());
        for (const json& way : one["ways"])
            job.ways.push_back(way.get<Way>());
    }
    for (const Way& way : job.ways)
        if (way.ns < 0)
            add(job.findings, "ways", State::Problem,
                "puts from rank " + std::to_string(way.from) + " to rank " + std::to_string(way.to) + " do not arrive",
                "set OSC_OFI_IFACE to the interface of the network that both share; "
                "docs/TROUBLESHOOTING.md, \"Wrong provider\"");
    compare_cores(job, job.findings);
    compare(all, "settings", "settings", "the processes have different OSC_ variables",
            "give all processes the same (mpiexec -genv)", job.findings);
    compare(all, "provider", "providers", "the nodes use different providers",
            "set OSC_OFI_PROVIDER to one that all have", job.findings);
    return job;
}

}  // namespace osc::tools
