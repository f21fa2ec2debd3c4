// How the processes of a node share its cores: by their affinity masks and by the quotas of their control groups. It
// decides how a process waits: one that spins on a core of its own takes time from no other process.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/control_groups.h"

namespace osc::base {

/// The cores and the processor time that the system allows a process; in its arena's header.
struct CoreAllowance {
    static constexpr std::size_t kMostCores = 8192;  // the most that a kernel for x86-64 is built for
    static constexpr std::size_t kMostQuotas = 4;
    std::array<std::uint64_t, kMostCores / 64> mask{};  // one bit for each core; all 0: unknown
    std::array<CpuQuota, kMostQuotas> quotas{};         // the smallest ones first

    /// Whether some core of the machine is closed to the process, or the system does not say.
    bool is_bound() const;
};

/// Reads the main thread's affinity mask; the first call counts. libosc calls it when it is loaded: a thread's mask
/// says later how the program places its threads (OMP_PROC_BIND), not where the launcher has bound the process.
void note_affinity();

/// The mask that note_affinity() has read, and the quotas of the control groups above this process. `root`: see
/// control_groups().
CoreAllowance read_core_allowance(const std::string& root = {});

/// Whether processes can each have a core that no other of them uses.
struct CoreSharing {
    enum class Limit { None, Unknown, Cores, Quota };
    Limit limit = Limit::None;      // None: each process can have a core
    std::size_t processes = 0;      // those that share the cores or the quota
    std::uint64_t milli_cores = 0;  // that they share, in thousandths

    bool crowded() const { return limit != Limit::None; }
    /// Such as "2 processes share 1 core".
    std::string text() const;
};
CoreSharing core_sharing(std::span<const CoreAllowance> processes);

}  // namespace osc::base
