// Reads /proc/thread-self/cgroup. The groups' folders are where systemd and container runtimes mount them.
#include "base/control_groups.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/system_file.h"

namespace osc::base {
namespace {

// "max 100000" and -1 are no quotas.
std::uint64_t quota_of(const std::string& root, const ControlGroup& group) {
    const auto numbers = [&](const char* name, long long& first, long long& second) {
        return std::sscanf(line_of(root + group.folder + name).c_str(), "%lld %lld", &first, &second);
    };
    long long time = 0;
    long long period = 0;
    long long none = 0;
    const bool found = group.unified ? numbers("/cpu.max", time, period) == 2
                                     : numbers("/cpu.cfs_quota_us", time, none) == 1 &&
                                           numbers("/cpu.cfs_period_us", period, none) == 1;
    if (!found || time <= 0 || period <= 0) return 0;
    return static_cast<std::uint64_t>(std::max(time * 1000 / period, 1LL));
}

}  // namespace

std::vector<ControlGroup> control_groups(const std::string& controller, const std::string& root) {
    std::vector<ControlGroup> groups;
    std::FILE* file = std::fopen((root + "/proc/thread-self/cgroup").c_str(), "re");
    char line[4096];
    while (file != nullptr && std::fgets(line, sizeof line, file) != nullptr) {
        line[std::strcspn(line, "\n")] = '\0';
        const char* controllers = std::strchr(line, ':');
        const char* path = controllers != nullptr ? std::strchr(controllers + 1, ':') : nullptr;
        if (path == nullptr) continue;
        const std::string names(controllers + 1, path);
        const bool unified = names.empty();
        if (!unified && ("," + names + ",").find("," + controller + ",") == std::string::npos) continue;
        const std::vector<std::string> mounts =
            unified ? std::vector<std::string>{"", "/unified"} : std::vector<std::string>{"/" + controller};
        for (std::string part = path + 1;; part.erase(part.rfind('/'))) {
            if (part == "/") part.clear();
            for (const std::string& mount : mounts)
                groups.push_back({"/sys/fs/cgroup" + mount + part, unified});
            if (part.rfind('/') == std::string::npos) break;
        }
    }
    if (file != nullptr) std::fclose(file);
    return groups;
}

std::vector<CpuQuota> cpu_quotas(const std::string& root) {
    std::vector<CpuQuota> found;
    for (const ControlGroup& group : control_groups("cpu", root)) {
        struct stat folder {};
        const std::uint64_t quota = quota_of(root, group);
        if (quota != 0 && ::stat((root + group.folder).c_str(), &folder) == 0) found.push_back({folder.st_ino, quota});
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const CpuQuota& a, const CpuQuota& b) { return a.milli_cores < b.milli_cores; });
    return found;
}

}  // namespace osc::base
