// MPICH over UCX polls for messages with ucp_worker_progress, a public function of UCX that it imports. This file
// replaces that entry of the host's import table by a function that also drives libosc's network. Other libraries'
// calls do not change, and libosc exports no name for it.
// Build: start
#include <atomic>
#include <mutex>

#include "abi/mpich/ucx.h"
#include "shm/activity.h"

namespace osc::abi {
namespace {

using Progress = unsigned (*)(void* worker);
constexpr const char* kProgress = "ucp_worker_progress";

std::atomic<Progress> g_progress{nullptr};  // UCX's own
std::atomic<void (*)()> g_called{nullptr};

// Called through the table's entry, which its readers load without synchronisation: stores before the entry's may
// become visible a little later.
unsigned count_progress(void* worker) {
    Progress progress = nullptr;
    while ((progress = g_progress.load(std::memory_order_acquire)) == nullptr) {
    }
    const unsigned events = progress(worker);
    std::atomic<std::uint64_t>& polls = shm::my_activity().host_polls;
    polls.store(polls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);  // a lost count does no harm
    if (void (*const called)() = g_called.load(std::memory_order_relaxed); called != nullptr) called();
    return events;
}

}  // namespace

bool hook_progress(void (*called)()) {
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    if (called != nullptr) g_called.store(called, std::memory_order_relaxed);
    if (g_progress.load(std::memory_order_relaxed) != nullptr) return true;
    auto* const function = reinterpret_cast<Progress>(imported(kProgress));
    if (function == nullptr) return false;
    g_progress.store(function, std::memory_order_release);
    if (redirect(kProgress, reinterpret_cast<void*>(&count_progress))) return true;
    g_progress.store(nullptr, std::memory_order_relaxed);
    return false;
}

unsigned progress_of(void* worker) {
    static const auto function = reinterpret_cast<Progress>(imported(kProgress));
    return g_progress.load(std::memory_order_acquire) != nullptr ? count_progress(worker) : function(worker);
}

}  // namespace osc::abi
