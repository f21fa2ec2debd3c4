// MPICH over UCX looks for messages by ucp_worker_progress, a function of UCX's public interface that it imports: its
// entry in the host's own table of imports is replaced by one that looks at libosc's network too. Nobody else's calls
// are touched, and no name is exported for it.
#include "host/progress_hook.h"

#include <atomic>
#include <mutex>

#include "host/imports.h"

namespace osc::host {
namespace {

using Progress = unsigned (*)(void* worker);
constexpr const char* kProgress = "ucp_worker_progress";

std::atomic<Progress> g_progress{nullptr};  // UCX's own
std::atomic<void (*)()> g_called{nullptr};

// Reached through the table's entry, which is no atomic to those who read it: what was stored before it may come into
// sight a little later.
unsigned progress_and_tell(void* worker) {
    Progress progress = nullptr;
    while ((progress = g_progress.load(std::memory_order_acquire)) == nullptr) {
    }
    const unsigned events = progress(worker);
    g_called.load(std::memory_order_relaxed)();
    return events;
}

}  // namespace

bool hook_progress(void (*called)()) {
    static std::mutex mutex;
    const std::lock_guard lock(mutex);
    g_called.store(called, std::memory_order_relaxed);
    if (g_progress.load(std::memory_order_relaxed) != nullptr) return true;
    auto* const function = reinterpret_cast<Progress>(exported_to_host(kProgress));
    if (function == nullptr) return false;
    g_progress.store(function, std::memory_order_release);
    if (replace_import(kProgress, reinterpret_cast<void*>(&progress_and_tell))) return true;
    g_progress.store(nullptr, std::memory_order_relaxed);
    return false;
}

unsigned progress_of(void* worker) {
    static const auto function = reinterpret_cast<Progress>(exported_to_host(kProgress));
    return g_progress.load(std::memory_order_acquire) != nullptr ? progress_and_tell(worker) : function(worker);
}

}  // namespace osc::host
