// Whether processes can each have a core: made-up masks and quotas, the definition, and the system's files.
#include "base/core_sharing.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <initializer_list>
#include <random>
#include <thread>
#include <vector>

#include "fake_system.h"

namespace {

using osc::base::core_sharing;
using osc::base::CoreAllowance;
using osc::base::CoreSharing;
using osc::test::FakeSystem;
using Quota = osc::base::CpuQuota;

CoreAllowance on(std::initializer_list<std::size_t> cores, std::initializer_list<Quota> quotas = {}) {
    CoreAllowance allowance;
    for (const std::size_t core : cores)
        allowance.mask[core / 64] |= std::uint64_t{1} << core % 64;
    std::copy(quotas.begin(), quotas.end(), allowance.quotas.begin());
    return allowance;
}

std::string text_of(const std::vector<CoreAllowance>& processes) {
    return core_sharing(processes).text();
}

constexpr const char* kEach = "each process has a core";

TEST(CoreSharing, BoundToACoreEach) {
    EXPECT_EQ(text_of({on({0})}), kEach);
    EXPECT_EQ(text_of({on({0}), on({1})}), kEach);
    EXPECT_EQ(text_of({on({5}), on({64}), on({8191})}), kEach);
}

TEST(CoreSharing, BoundToOneCore) {
    EXPECT_EQ(text_of({on({0}), on({0})}), "2 processes share 1 core");
    EXPECT_EQ(text_of({on({3}), on({0}), on({3}), on({1}), on({3})}), "3 processes share 1 core");
}

TEST(CoreSharing, Unbound) {
    EXPECT_EQ(text_of({on({0, 1}), on({0, 1})}), kEach);
    EXPECT_EQ(text_of({on({0, 1}), on({0, 1}), on({0, 1}), on({0, 1})}), "4 processes share 2 cores");
}

TEST(CoreSharing, ByDomains) {
    // Two processes on each of two domains of two cores, and a fifth one.
    EXPECT_EQ(text_of({on({0, 1}), on({0, 1}), on({2, 3}), on({2, 3})}), kEach);
    EXPECT_EQ(text_of({on({0, 1}), on({0, 1}), on({2, 3}), on({2, 3}), on({2, 3})}), "3 processes share 2 cores");
}

TEST(CoreSharing, MasksThatOverlap) {
    // The first process must leave core 0 to the second one, and the second core 1 to the third.
    EXPECT_EQ(text_of({on({0, 1, 2}), on({0, 1}), on({0})}), kEach);
    EXPECT_EQ(text_of({on({0, 1}), on({1, 2}), on({0, 2}), on({2})}), "4 processes share 3 cores");
    EXPECT_EQ(text_of({on({0, 1, 2, 3}), on({0}), on({0})}), "2 processes share 1 core");
}

TEST(CoreSharing, AMaskThatTheSystemHides) {
    EXPECT_TRUE(core_sharing(std::vector{on({0}), on({})}).crowded());
    EXPECT_EQ(text_of({on({0}), on({})}), "the system does not say which cores the processes may use");
}

TEST(CoreSharing, Quotas) {
    EXPECT_EQ(text_of({on({0, 1}, {{7, 2000}}), on({0, 1}, {{7, 2000}})}), kEach);
    EXPECT_EQ(text_of({on({0, 1}, {{7, 1990}}), on({0, 1}, {{7, 1990}})}), "the quota of 2 processes is 1.99 cores");
    EXPECT_EQ(text_of({on({0, 1}, {{7, 500}})}), "the quota of 1 process is 0.50 cores");
    // A container for each process, and a limit on both together.
    EXPECT_EQ(text_of({on({0, 1}, {{7, 1000}}), on({0, 1}, {{8, 1000}})}), kEach);
    EXPECT_EQ(text_of({on({0, 1}, {{7, 1000}, {9, 1500}}), on({0, 1}, {{8, 1000}, {9, 1500}})}),
              "the quota of 2 processes is 1.50 cores");
    // A quota that is large enough does not make up for a core that two processes share.
    EXPECT_EQ(text_of({on({0}, {{7, 2000}}), on({0}, {{7, 2000}})}), "2 processes share 1 core");
}

// Hall's theorem: every set of processes has as many cores as it has processes, or more.
bool each_has_a_core(const std::vector<CoreAllowance>& processes) {
    for (unsigned set = 1; set < 1u << processes.size(); ++set) {
        std::uint64_t cores = 0;
        for (std::size_t at = 0; at < processes.size(); ++at)
            if (set >> at & 1) cores |= processes[at].mask[0];
        if (std::popcount(cores) < std::popcount(set)) return false;
    }
    return true;
}

TEST(CoreSharing, AgreesWithHall) {
    std::mt19937 random(11);
    int crowded = 0;
    for (int round = 0; round < 3000; ++round) {
        std::vector<CoreAllowance> processes(1 + random() % 7);
        const unsigned cores = 1 + random() % 8;
        for (CoreAllowance& process : processes)
            process.mask[0] = (random() & random() & ((1u << cores) - 1)) | 1u << random() % cores;
        EXPECT_EQ(!core_sharing(processes).crowded(), each_has_a_core(processes)) << "round " << round;
        crowded += core_sharing(processes).crowded();
    }
    EXPECT_GT(crowded, 500);
    EXPECT_LT(crowded, 2500);
}

TEST(CoreSharing, ManyUnboundProcesses) {
    std::vector<CoreAllowance> processes(256);
    for (CoreAllowance& process : processes)
        std::fill_n(process.mask.begin(), 4, ~std::uint64_t{0});
    EXPECT_EQ(text_of(processes), kEach);
    processes.push_back(processes.front());
    EXPECT_EQ(text_of(processes), "257 processes share 256 cores");
}

// The quotas of a process whose files are these.
std::vector<std::uint64_t> quotas_of(const FakeSystem& system) {
    std::vector<std::uint64_t> cores;
    for (const Quota& quota : osc::base::read_core_allowance(system.root()).quotas)
        if (quota.group != 0) cores.push_back(quota.milli_cores);
    return cores;
}

using Quotas = std::vector<std::uint64_t>;

TEST(CoreAllowance, QuotasOfVersion2) {
    const FakeSystem system;
    EXPECT_EQ(quotas_of(system), Quotas{});
    system.write("/proc/thread-self/cgroup", "0::/jobs/step/task\n");
    system.write("/sys/fs/cgroup/jobs/cpu.max", "400000 100000\n");
    system.write("/sys/fs/cgroup/jobs/step/cpu.max", "max 100000\n");
    system.write("/sys/fs/cgroup/jobs/step/task/cpu.max", "75000 50000\n");
    EXPECT_EQ(quotas_of(system), (Quotas{1500, 4000}));
}

TEST(CoreAllowance, QuotasOfVersion1) {
    const FakeSystem system;
    system.write("/proc/thread-self/cgroup", "4:memory:/other\n3:cpu,cpuacct:/docker/abc\n0::/\n");
    system.write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "250000\n");  // a container sees its own group as the root
    system.write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    system.write("/sys/fs/cgroup/cpu/docker/cpu.cfs_quota_us", "-1\n");
    system.write("/sys/fs/cgroup/cpu/docker/cpu.cfs_period_us", "100000\n");
    system.write("/sys/fs/cgroup/memory/other/cpu.cfs_quota_us", "1000\n");
    system.write("/sys/fs/cgroup/memory/other/cpu.cfs_period_us", "100000\n");
    EXPECT_EQ(quotas_of(system), Quotas{2500});
}

TEST(CoreAllowance, TheSmallestQuotasCount) {
    const FakeSystem system;
    system.write("/proc/thread-self/cgroup", "0::/a/b/c/d/e\n");
    std::string folder = "/sys/fs/cgroup";
    for (const char* name : {"/a", "/b", "/c", "/d", "/e"})
        system.write((folder += name) + "/cpu.max", std::to_string(100000 * (name[1] - 'a' + 1)) + " 100000\n");
    EXPECT_EQ(quotas_of(system), (Quotas{1000, 2000, 3000, 4000}));
}

TEST(CoreAllowance, TwoProcessesOfAGroupHaveItsNumber) {
    const FakeSystem system;
    system.write("/proc/thread-self/cgroup", "0::/job/a\n");
    system.write("/sys/fs/cgroup/job/cpu.max", "150000 100000\n");
    const CoreAllowance one = osc::base::read_core_allowance(system.root());
    system.write("/proc/thread-self/cgroup", "0::/job/b\n");
    const CoreAllowance other = osc::base::read_core_allowance(system.root());
    EXPECT_EQ(one.quotas[0].group, other.quotas[0].group);
    EXPECT_TRUE(core_sharing(std::vector{one, other}).crowded());
}

// What the calling thread does with its own mask says nothing of the process.
TEST(CoreAllowance, TheMaskIsTheProcessesAtStart) {
    osc::base::note_affinity();
    cpu_set_t before;
    ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
    std::size_t cores = 0;
    std::thread([&] {
        cpu_set_t one;
        CPU_ZERO(&one);
        for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++core)
            if (CPU_ISSET(core, &before)) CPU_SET(core, &one);
        ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
        for (const std::uint64_t word : osc::base::read_core_allowance().mask)
            cores += static_cast<std::size_t>(std::popcount(word));
    }).join();
    EXPECT_EQ(cores, static_cast<std::size_t>(CPU_COUNT(&before)));
}

}  // namespace
