// What Open MPI does in its own ways: datatypes, requests, windows, progress.
#include <atomic>
#include <mutex>
#include <vector>

#include "abi/abi.h"
#include "abi/openmpi/recognise.h"
#include "shm/activity.h"

namespace osc::abi {

const char* const kName = "Open MPI";
const char* const kSuffix = "_ompi";

bool is_host(void* (*find)(const char* symbol)) {
    return find(openmpi::kWorld) != nullptr;
}

// MPI_Win_create of one process takes a component that may fail or open a device.
int make_window(MPI_Comm self, MPI_Win* window) {
    static const auto allocate =
        reinterpret_cast<decltype(&::MPI_Win_allocate_shared)>(host::host_symbol("PMPI_Win_allocate_shared"));
    void* base = nullptr;
    return allocate(0, 1, MPI_INFO_NULL, self, static_cast<void*>(&base), window);
}

MPI_Win window_of(MPI_Fint handle) {
    static const auto to_c = reinterpret_cast<decltype(&::MPI_Win_f2c)>(host::host_symbol("PMPI_Win_f2c"));
    return to_c(handle);
}

bool is_constant_request(MPI_Request request) {
    return reinterpret_cast<void*>(request) == host::host_symbol("ompi_request_empty");
}

bool simulates_nodes() {
    return false;
}

void hook_finalize() {}

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
};

PolledRequests& polled_requests() {
    static auto* const made = new PolledRequests;
    return *made;
}

Polled& polled(void* state) {
    return *static_cast<Polled*>(state);
}

int query(void* state, MPI_Status* status) {
    return polled(state).functions.query(polled(state).state, status);
}

int cancel(void* state, int complete) {
    return polled(state).functions.cancel(polled(state).state, complete);
}

int release(void* state) {
    PolledRequests& requests = polled_requests();
    const std::lock_guard lock(requests.mutex);
    std::erase(requests.all, &polled(state));
    const int error = polled(state).functions.free(polled(state).state);
    delete &polled(state);
    return error;
}

std::atomic<void (*)()> g_called{nullptr};

// The host's progress function calls this. Polls may drive the host, which calls it again.
int progressed() {
    static thread_local bool inside = false;
    if (inside) return 0;
    inside = true;
    std::atomic<std::uint64_t>& polls = shm::my_activity().host_polls;
    polls.store(polls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);  // a lost count does no harm
    if (void (*const called)() = g_called.load(std::memory_order_relaxed); called != nullptr) called();
    PolledRequests& requests = polled_requests();
    if (const std::unique_lock lock(requests.mutex, std::try_to_lock); lock.owns_lock())
        for (std::size_t i = requests.all.size(); i-- > 0;)
            if (i < requests.all.size()) requests.all[i]->functions.poll(requests.all[i]->state, MPI_STATUS_IGNORE);
    inside = false;
    return 0;
}

bool is_hooked() {
    using Register = int (*)(int (*)());
    static const bool done = [] {
        const auto add = reinterpret_cast<Register>(host::host_symbol("opal_progress_register"));
        return add != nullptr && add(&progressed) == 0;
    }();
    return done;
}

}  // namespace

bool hook_progress(void (*called)()) {
    if (called != nullptr) g_called.store(called, std::memory_order_relaxed);
    return is_hooked();
}

bool can_poll_requests() {
    return is_hooked();
}

int start_polled_request(const PolledRequest& functions, void* state, MPI_Request* request) {
    static const auto start =
        reinterpret_cast<decltype(&::MPI_Grequest_start)>(host::host_symbol("PMPI_Grequest_start"));
    auto* const made = new Polled{functions, state};
    PolledRequests& requests = polled_requests();
    const std::lock_guard lock(requests.mutex);
    const int error = start(&query, &release, &cancel, made, request);
    if (error == MPI_SUCCESS)
        requests.all.push_back(made);
    else
        delete made;
    return error;
}

// Predefined datatypes.

namespace detail {
const TypeInfo* g_predefined[kSlots];
}

std::span<const PredefinedType> own_types() {
    return {};
}

void enter_type(MPI_Datatype type, Basic basic) {
    const TypeInfo*& slot = detail::slot_of(handle_key(type));
    if (slot == nullptr) slot = new TypeInfo(handle_key(type), op::Layout::leaf(basic), true);
}

bool may_be_datatype(MPI_Datatype type) noexcept {
    return type != nullptr && type != MPI_DATATYPE_NULL;
}

bool may_be_info(MPI_Info info) noexcept {
    return info != nullptr;
}

// Open MPI has removed the constructors of MPI 1.
int modern_combiner(int combiner) noexcept {
    return combiner;
}

}  // namespace osc::abi
