// Open requests, and orphans: requests whose handles the user has freed before their operations ended.
//
// The host calls released() when the user's handle is freed. If the operation has ended, the request is deleted then.
// If not, the host still counts a reference for its completion, and the request becomes an orphan. reap() completes
// orphans when requests are made, epochs end or MPI ends. An operation does not outlive its epoch, so no request needs
// its window's stream after the stream's end.
#include "window/request.h"

#include <atomic>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/log.h"
#include "host/host.h"
#include "host/request.h"
#include "net/origin/stream.h"
#include "window/create.h"
#include "window/registry.h"

namespace osc::request {
namespace {

class Open;

// Never destroyed: the host may release a request late.
struct Table {
    std::mutex mutex;
    std::unordered_map<MPI_Request, Open*> open;  // by the user's handle
    std::vector<Open*> orphans;
    std::atomic<std::size_t> opened{0};
    std::atomic<std::size_t> orphaned{0};
};
Table& table() {
    static auto* made = new Table;
    return *made;
}

class Open final : public host::Awaited {
  public:
    Open(const Window& window, net::PendingOp pending)
        : window_(&window), window_handle_(window.handle), pending_(std::move(pending)) {}

    int start(MPI_Request* request) {
        const int error = host::start_request(*this, request);
        if (error == MPI_SUCCESS) handle_.store(*request, std::memory_order_release);
        return error;
    }
    MPI_Request handle() const { return handle_.load(std::memory_order_acquire); }
    bool ended() const { return pending_.completion->ended(); }
    void complete() {
        if (!completed_.exchange(true, std::memory_order_acq_rel)) host::complete_request(handle());
    }

    // Another thread that waits in the host may look before start() has returned.
    void look() override {
        if (handle() == MPI_REQUEST_NULL) return;
        if (ended() || pending_.stream->look(*pending_.completion)) complete();
    }
    void await() override {
        if (!ended()) pending_.stream->await(*pending_.completion);
        complete();
    }
    int result() override;
    void released() override;

  private:
    const Window* const window_;  // may be freed; never dereferenced
    const MPI_Win window_handle_;
    const net::PendingOp pending_;
    std::atomic<MPI_Request> handle_{MPI_REQUEST_NULL};
    std::atomic<bool> completed_{false};
};

// The host calls its own error handler for such requests. If that would end a program whose window's errors do not,
// this function reports success, and only the next call that completes operations reports the error; it does so in any
// case.
int Open::result() {
    const Fault fault = net::fault_of(pending_.completion->status(), pending_.target);
    if (fault == Fault::None) return MPI_SUCCESS;
    if (!host::request_errors_are_fatal()) return error_class(fault);
    if (find_window(window_handle_) == window_ && !host::window_errors_are_fatal(window_handle_)) return MPI_SUCCESS;
    base::say("a request of an operation on rank %u: %s", pending_.target, base::fault_text());
    return error_class(fault);
}

void Open::released() {
    {
        const std::lock_guard lock(table().mutex);
        table().open.erase(handle());
        table().opened.store(table().open.size(), std::memory_order_relaxed);
        if (!completed_.load(std::memory_order_acquire)) {
            table().orphans.push_back(this);
            table().orphaned.store(table().orphans.size(), std::memory_order_relaxed);
            return;
        }
    }
    delete this;
}

}  // namespace

Fault give(Window& window, net::PendingOp pending, MPI_Request* request, int& host_error) {
    reap();
    host_error = MPI_SUCCESS;
    if (!pending.completion->ended() && !abi::progress().polls_requests()) pending.stream->await(*pending.completion);
    if (pending.completion->ended()) {
        if (const net::Status status = pending.completion->status(); status != net::Status::Done) {
            const Fault fault =
                window.core.complete_ops(pending.target);  // reports the fault now, so later calls do not
            return fault != Fault::None ? fault : net::fault_of(status, pending.target);
        }
        host_error = host::completed_request(request);
        return Fault::None;
    }
    auto* const open = new Open(window, std::move(pending));
    host_error = open->start(request);  // not under the table's lock: the host may release a request under its own
    if (host_error != MPI_SUCCESS) {
        delete open;
        return Fault::None;
    }
    const std::lock_guard lock(table().mutex);
    table().open[open->handle()] = open;
    table().opened.store(table().open.size(), std::memory_order_relaxed);
    return Fault::None;
}

void look(MPI_Request request) {
    if (table().opened.load(std::memory_order_relaxed) == 0) return;
    Open* open = nullptr;
    {
        const std::lock_guard lock(table().mutex);
        if (const auto found = table().open.find(request); found != table().open.end()) open = found->second;
    }
    if (open != nullptr) open->look();
}

void reap() {
    if (table().orphaned.load(std::memory_order_relaxed) == 0) return;
    std::vector<Open*> ended;
    {
        const std::lock_guard lock(table().mutex);
        std::erase_if(table().orphans, [&](Open* orphan) {
            const bool over = orphan->ended();
            if (over) ended.push_back(orphan);
            return over;
        });
        table().orphaned.store(table().orphans.size(), std::memory_order_relaxed);
    }
    for (Open* orphan : ended) {
        orphan->complete();
        delete orphan;
    }
}

}  // namespace osc::request
