// Requests of operations (MPI 4.1 section 12.3.5), from the call that gives one to the call that completes it. A call
// has completed a request if it has set the handle to MPI_REQUEST_NULL.
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "host/host.h"
#include "host/request.h"
#include "plugins/verify/entries.h"
#include "plugins/verify/order_calls.h"

namespace osc {
namespace {

struct Followed {
    check::Ledger* ledger;  // null: the window has been freed
    std::string window;
    check::Line issued;
    std::uint32_t target;
    std::uint64_t operation;
};

// Never destroyed: MPI may be used by exit handlers.
struct Requests {
    std::mutex mutex;
    std::unordered_map<MPI_Request, Followed> followed;
};
Requests& requests() {
    static auto* made = new Requests;
    return *made;
}

constexpr std::size_t kMostFollowed = 65536;  // MPICH has room for 262,144

bool take(MPI_Request request, Followed& entry) {
    Requests& all = requests();
    const std::lock_guard lock(all.mutex);
    const auto found = all.followed.find(request);
    if (found == all.followed.end()) return false;
    entry = std::move(found->second);
    all.followed.erase(found);
    return true;
}

// Runs a call that may complete some of `count` requests.
template <class Below>
int completing(const char* name, const void* returns_to, int count, MPI_Request* handles, Below&& below) {
    if (handles == nullptr || count <= 0) {
        const check::IgnoredScope ignored;
        return below();
    }
    const std::vector<MPI_Request> before(handles, handles + count);
    const check::IgnoredScope ignored;
    const int error = below();
    for (std::size_t i = 0; i < before.size(); ++i) {
        if (before[i] != MPI_REQUEST_NULL) look_at_request(before[i], handles[i] == MPI_REQUEST_NULL);
        Followed entry;
        if (before[i] == MPI_REQUEST_NULL || handles[i] != MPI_REQUEST_NULL || !take(before[i], entry)) continue;
        if (entry.ledger == nullptr) continue;
        const check::Synchronisation call{.act = check::Act::Request,
                                          .call = name,
                                          .site = check::site_of(returns_to),
                                          .target = entry.target,
                                          .operation = entry.operation};
        entry.ledger->before(call);
        entry.ledger->after(call);
    }
    return error;
}

}  // namespace

bool may_follow_request() {
    Requests& all = requests();
    const std::lock_guard lock(all.mutex);
    return all.followed.size() < kMostFollowed;
}

void follow_request(Window& window, check::Line issued, const check::Operation& operation, MPI_Request& request) {
    if (plugin::g_libosc.give_own_handle(&request) != MPI_SUCCESS) return;
    Requests& all = requests();
    const std::lock_guard lock(all.mutex);
    all.followed.insert_or_assign(request, Followed{window.core.ledger, window.core.ledger->name(), std::move(issued),
                                                    operation.target, operation.number});
}

void forget_ledger(const check::Ledger& ledger) {
    Requests& all = requests();
    const std::lock_guard lock(all.mutex);
    for (auto& [request, entry] : all.followed)
        if (entry.ledger == &ledger) entry.ledger = nullptr;
}

void report_open_requests() {
    Requests& all = requests();
    const std::lock_guard lock(all.mutex);
    for (const auto& [request, entry] : all.followed)
        check::report({check::Rule::Request,
                       entry.window,
                       {{entry.issued.text + ": no wait or test has completed its request", entry.issued.site}}});
}

namespace verified {

#define OSC_COMPLETING(name, count, handles, parameters, arguments)                          \
    int name parameters {                                                                    \
        return completing("MPI_" #name, __builtin_return_address(0), count, handles,         \
                          [&] { return through(plugin::g_libosc.behind->name) arguments; }); \
    }
OSC_COMPLETING(Wait, 1, request, (MPI_Request * request, MPI_Status* status), (request, status))
OSC_COMPLETING(Test, 1, request, (MPI_Request * request, int* flag, MPI_Status* status), (request, flag, status))
OSC_COMPLETING(Waitall, count, handles, (int count, MPI_Request* handles, MPI_Status* statuses),
               (count, handles, statuses))
OSC_COMPLETING(Waitany, count, handles, (int count, MPI_Request* handles, int* index, MPI_Status* status),
               (count, handles, index, status))
OSC_COMPLETING(Waitsome, count, handles,
               (int count, MPI_Request* handles, int* completed, int* indices, MPI_Status* statuses),
               (count, handles, completed, indices, statuses))
OSC_COMPLETING(Testall, count, handles, (int count, MPI_Request* handles, int* flag, MPI_Status* statuses),
               (count, handles, flag, statuses))
OSC_COMPLETING(Testany, count, handles, (int count, MPI_Request* handles, int* index, int* flag, MPI_Status* status),
               (count, handles, index, flag, status))
OSC_COMPLETING(Testsome, count, handles,
               (int count, MPI_Request* handles, int* completed, int* indices, MPI_Status* statuses),
               (count, handles, completed, indices, statuses))

int Request_free(MPI_Request* request) {
    Followed entry;
    if (request != nullptr) forget_request(*request);
    if (request != nullptr && take(*request, entry))
        check::report({check::Rule::Request,
                       entry.window,
                       {{"MPI_Request_free of the request of an operation, which only a wait or test may complete",
                         check::site_of(__builtin_return_address(0))},
                        {entry.issued.text, entry.issued.site}}});
    return through(plugin::g_libosc.behind->Request_free)(request);
}

}  // namespace verified
}  // namespace osc
