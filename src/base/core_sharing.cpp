// The decision about cores is a matching of processes with cores; the system's answers come from sched_getaffinity and
// the control groups' files.
#include "base/core_sharing.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <map>
#include <vector>

#include "base/control_groups.h"
#include "base/log.h"

namespace osc::base {
namespace {

using Mask = std::array<std::uint64_t, CoreAllowance::kMostCores / 64>;
constinit Mask g_mask{};

bool is_empty(const Mask& mask) {
    return std::all_of(mask.begin(), mask.end(), [](std::uint64_t word) { return word == 0; });
}

std::size_t count(const Mask& mask) {
    std::size_t cores = 0;
    for (const std::uint64_t word : mask)
        cores += static_cast<std::size_t>(std::popcount(word));
    return cores;
}

// Gives each process a core, one process after the other. A process whose cores are all taken has the taker of one of
// them move to another core, if that taker, or the taker of that core, and so on, finds a free one.
class Matching {
  public:
    explicit Matching(std::span<const CoreAllowance> processes) : processes_(processes) {}

    // False if the process finds no core. seen() are then the cores of the processes that compete with it.
    bool add(std::size_t process) {
        seen_ = {};
        came_from_.clear();
        std::vector<std::size_t> open{process};
        while (!open.empty()) {
            const std::size_t one = open.back();
            open.pop_back();
            for (std::size_t word = 0; word < seen_.size(); ++word) {
                for (std::uint64_t rest = processes_[one].mask[word] & ~seen_[word]; rest != 0; rest &= rest - 1) {
                    const std::size_t core = word * 64 + static_cast<std::size_t>(std::countr_zero(rest));
                    came_from_[core] = one;
                    const auto taken = taker_.find(core);
                    if (taken == taker_.end()) return move_up(core, process);
                    open.push_back(taken->second);
                }
                seen_[word] |= processes_[one].mask[word];
            }
        }
        return false;
    }
    const Mask& seen() const { return seen_; }

  private:
    // Each process on the way from `process` to the free core takes the next core of the way.
    bool move_up(std::size_t core, std::size_t process) {
        for (;;) {
            const std::size_t one = came_from_.at(core);
            taker_[core] = one;
            const auto before = core_of_.find(one);
            const std::size_t left = before != core_of_.end() ? before->second : core;
            core_of_[one] = core;
            if (one == process) return true;
            core = left;
        }
    }

    std::span<const CoreAllowance> processes_;
    Mask seen_{};
    std::map<std::size_t, std::size_t> taker_, core_of_;  // by core, by process
    std::map<std::size_t, std::size_t> came_from_;        // core -> the process that may take it
};

}  // namespace

void note_affinity() {
    // The process's number is its main thread's. The kernel refuses a buffer that is shorter than its own masks.
    static const bool kKnown =
        ::sched_getaffinity(::getpid(), sizeof g_mask, reinterpret_cast<cpu_set_t*>(g_mask.data())) == 0;
    if (!kKnown) g_mask = {};
}

CoreAllowance read_core_allowance(const std::string& root) {
    note_affinity();
    CoreAllowance allowance;
    allowance.mask = g_mask;
    const std::vector<CpuQuota> found = cpu_quotas(root);
    std::copy_n(found.begin(), std::min(found.size(), CoreAllowance::kMostQuotas), allowance.quotas.begin());
    return allowance;
}

bool CoreAllowance::is_bound() const {
    const long cores = ::sysconf(_SC_NPROCESSORS_ONLN);
    return cores <= 0 || count(mask) < static_cast<std::size_t>(cores);
}

CoreSharing core_sharing(std::span<const CoreAllowance> processes) {
    std::map<std::uint64_t, CoreSharing> groups;
    for (const CoreAllowance& process : processes) {
        if (is_empty(process.mask)) return {CoreSharing::Limit::Unknown, processes.size(), 0};
        for (const CpuQuota& quota : process.quotas) {
            if (quota.group == 0) continue;
            CoreSharing& sharing = groups[quota.group];
            sharing = {CoreSharing::Limit::Quota, sharing.processes + 1, quota.milli_cores};
        }
    }
    for (const auto& [group, sharing] : groups)
        if (sharing.processes * 1000 > sharing.milli_cores) return sharing;
    Matching matching(processes);
    for (std::size_t process = 0; process < processes.size(); ++process) {
        if (matching.add(process)) continue;
        const Mask& cores = matching.seen();
        const auto within = [&](const CoreAllowance& other) {
            for (std::size_t word = 0; word < cores.size(); ++word)
                if ((other.mask[word] & ~cores[word]) != 0) return false;
            return true;
        };
        return {CoreSharing::Limit::Cores,
                static_cast<std::size_t>(std::count_if(processes.begin(), processes.end(), within)),
                count(cores) * 1000};
    }
    return {};
}

std::string CoreSharing::text() const {
    if (limit == Limit::None) return "each process has a core";
    if (limit == Limit::Unknown) return "the system does not say which cores the processes may use";
    if (limit == Limit::Quota)
        return format("the quota of %zu process%s is %.2f cores", processes, processes == 1 ? "" : "es",
                      static_cast<double>(milli_cores) / 1000);
    return format("%zu processes share %llu core%s", processes, static_cast<unsigned long long>(milli_cores / 1000),
                  milli_cores == 1000 ? "" : "s");
}

}  // namespace osc::base
