// Open MPI's progress function calls libosc, which then polls its requests.
#include "abi/openmpi/progress.h"

#include <atomic>
#include <mutex>
#include <utility>
#include <vector>

#include "shm/activity.h"

namespace osc::abi::openmpi {
namespace {

struct Polled {
    PolledRequest functions;
    void* state;
};

// Recursive, because a poll may complete a request that the application has freed. Never destroyed: the host may free a
// request late.
struct PolledRequests {
    std::recursive_mutex mutex;
    std::vector<Polled*> all;
    std::atomic<std::size_t> count{0};
};

PolledRequests& polled_requests() {
    static auto* const made = new PolledRequests;
    return *made;
}

Polled& polled(void* state) {
    return *static_cast<Polled*>(state);
}

// MPI_Grequest_complete looks whether the request has been freed after it has completed it. If a waiting thread frees
// it in between, both call release(). The host calls query() before it frees, which therefore comes behind
// complete_request().
int query(void* state, MPI_Status* status) {
    { const std::lock_guard lock(polled_requests().mutex); }
    return polled(state).functions.query(polled(state).state, status);
}

int cancel(void* state, int complete) {
    return polled(state).functions.cancel(polled(state).state, complete);
}

int release(void* state) {
    PolledRequests& requests = polled_requests();
    const std::lock_guard lock(requests.mutex);
    std::erase(requests.all, &polled(state));
    requests.count.store(requests.all.size(), std::memory_order_relaxed);
    const int error = polled(state).functions.free(polled(state).state);
    delete &polled(state);
    return error;
}

std::atomic<int (*)()> g_called{nullptr};
std::atomic<int> g_passing{0};  // of the next polls, if there are no requests

// The host's progress function calls this. Polls of requests may drive the host, which calls it again.
int progressed() {
    // Lost counts of two threads do no harm.
    const int passing = g_passing.load(std::memory_order_relaxed);
    PolledRequests& requests = polled_requests();
    if (passing > 0 && requests.count.load(std::memory_order_relaxed) == 0) {
        g_passing.store(passing - 1, std::memory_order_relaxed);
        return 0;
    }
    std::atomic<std::uint64_t>& polls = shm::my_activity().host_polls;
    polls.store(polls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (int (*const called)() = g_called.load(std::memory_order_relaxed); called != nullptr)
        g_passing.store(called(), std::memory_order_relaxed);
    static thread_local bool inside = false;
    if (requests.count.load(std::memory_order_relaxed) == 0 || std::exchange(inside, true)) return 0;
    if (const std::unique_lock lock(requests.mutex, std::try_to_lock); lock.owns_lock())
        for (std::size_t i = requests.all.size(); i-- > 0;)
            if (i < requests.all.size()) requests.all[i]->functions.poll(requests.all[i]->state, MPI_STATUS_IGNORE);
    inside = false;
    return 0;
}

std::atomic<bool> g_hooked{false};

// Does nothing if the host has the function already.
bool add_to_host() {
    using Register = int (*)(int (*)());
    static const auto add = reinterpret_cast<Register>(host::host_symbol("opal_progress_register"));
    return add != nullptr && add(&progressed) == 0;
}

bool is_hooked() {
    if (!g_hooked.load(std::memory_order_relaxed) && add_to_host()) g_hooked.store(true, std::memory_order_relaxed);
    return g_hooked.load(std::memory_order_relaxed);
}

void host_begins() {}

// The host forgets the function when its last session or the world ends.
void host_began(int error) {
    if (error == MPI_SUCCESS && g_hooked.load(std::memory_order_relaxed)) add_to_host();
}

bool hook(int (*called)()) {
    if (called != nullptr) g_called.store(called, std::memory_order_relaxed);
    return is_hooked();
}

int start_request(const PolledRequest& functions, void* state, MPI_Request* request) {
    static const auto start =
        reinterpret_cast<decltype(&::PMPI_Grequest_start)>(host::host_symbol("PMPI_Grequest_start"));
    auto* const made = new Polled{functions, state};
    PolledRequests& requests = polled_requests();
    const std::lock_guard lock(requests.mutex);
    const int error = start(&query, &release, &cancel, made, request);
    if (error == MPI_SUCCESS)
        requests.all.push_back(made);
    else
        delete made;
    requests.count.store(requests.all.size(), std::memory_order_relaxed);
    return error;
}

int complete_request(int (*complete)(MPI_Request), MPI_Request request) {
    const std::lock_guard lock(polled_requests().mutex);
    return complete(request);
}

void finalize() {}

}  // namespace

const Progress kProgress = {&is_hooked, &start_request, &complete_request, &hook, &host_begins, &host_began, &finalize};

}  // namespace osc::abi::openmpi
