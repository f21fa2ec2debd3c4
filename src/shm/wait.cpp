// Owns the process's wait policy.
#include "shm/wait.h"

namespace osc::shm {
namespace {

constexpr WaitPolicy kAtStart;
std::atomic<int> g_spin{kAtStart.spin};
std::atomic<int> g_yields{kAtStart.yields};
std::atomic<long> g_sleep_ms{kAtStart.sleep_ms};
std::atomic<void (*)()> g_progress{kAtStart.progress};
std::atomic<void (*)()> g_network{kAtStart.network};

}  // namespace

WaitPolicy wait_policy() {
    return {g_spin.load(std::memory_order_relaxed), g_yields.load(std::memory_order_relaxed),
            g_sleep_ms.load(std::memory_order_relaxed), g_progress.load(std::memory_order_relaxed),
            g_network.load(std::memory_order_relaxed)};
}

void set_wait_network(void (*drive)()) {
    g_network.store(drive, std::memory_order_relaxed);
}

void set_wait_policy(const WaitPolicy& policy) {
    g_spin.store(policy.spin, std::memory_order_relaxed);
    g_yields.store(policy.yields, std::memory_order_relaxed);
    g_sleep_ms.store(policy.sleep_ms, std::memory_order_relaxed);
    g_progress.store(policy.progress, std::memory_order_relaxed);
}

}  // namespace osc::shm
