// The control groups of this process, of version 1 and 2.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace osc::base {

struct ControlGroup {
    std::string folder;  // without the prefix `root`
    bool unified;        // of version 2
};

/// The group of this process that `controller` (memory, cpu) governs, and all groups above it: each of them limits the
/// process. `root`: a prefix of /proc and /sys (tests put their own files there). A container may show its own group as
/// the root, so the root is among them; a folder need not exist. Thread-safe.
std::vector<ControlGroup> control_groups(const std::string& controller, const std::string& root = {});

struct CpuQuota {
    std::uint64_t group = 0;        // number of the control group; 0: none
    std::uint64_t milli_cores = 0;  // its processor time in thousandths of a core
};

/// The quotas of processor time above this process, the smallest one first. `root`: as above. Thread-safe.
std::vector<CpuQuota> cpu_quotas(const std::string& root = {});

}  // namespace osc::base
