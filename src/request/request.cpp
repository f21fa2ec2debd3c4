// Open requests, and those whose users let go of them.
//
// The host tells when the user's handle is gone. If the operation has ended, its request is forgotten then. If not, the
// host still counts a reference for the end that is to come: the request is an orphan, whose end is looked for when
// requests are made, epochs end or MPI does. An operation outlives no epoch, so nothing here outlives its window's
// stream and needs it.
#include "request/request.h"

#include <atomic>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "diag/log.h"
#include "host/errhandler.h"
#include "host/host.h"
#include "host/request.h"
#include "transport/net/stream.h"
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
    Open(const Window& window, net::Asked asked)
        : window_(&window), window_handle_(window.handle), asked_(std::move(asked)) {}

    int start(MPI_Request* request) {
        const int error = host::start_request(*this, request);
        if (error == MPI_SUCCESS) handle_ = *request;
        return error;
    }
    MPI_Request handle() const { return handle_; }
    bool ended() const { return asked_.ticket->ended(); }
    void complete() {
        if (!completed_.exchange(true, std::memory_order_acq_rel)) host::complete_request(handle_);
    }

    void look() override {
        if (ended() || asked_.stream->look(*asked_.ticket)) complete();
    }
    void await() override {
        if (!ended()) asked_.stream->await(*asked_.ticket);
        complete();
    }
    int result() override;
    void released() override;

  private:
    const Window* const window_;  // which may be gone
    const MPI_Win window_handle_;
    const net::Asked asked_;
    MPI_Request handle_ = MPI_REQUEST_NULL;
    std::atomic<bool> completed_{false};
};

// The error goes by the error handler that the host takes for such requests. Where that would end a program whose
// window's errors do not, the next call that settles tells it alone: it does so in any case.
int Open::result() {
    const Fault fault = agent::fault_of(asked_.ticket->status(), asked_.target);
    if (fault == Fault::None) return MPI_SUCCESS;
    if (!host::request_errors_are_fatal()) return error_class(fault);
    if (find_window(window_handle_) == window_ && !host::window_errors_are_fatal(window_handle_)) return MPI_SUCCESS;
    diag::say("a request of an operation on rank %u: %s", asked_.target, diag::fault_text());
    return error_class(fault);
}

void Open::released() {
    {
        const std::lock_guard lock(table().mutex);
        table().open.erase(handle_);
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

Fault give(Window& window, net::Asked asked, MPI_Request* request, int& host_error) {
    reap();
    host_error = MPI_SUCCESS;
    if (!asked.ticket->ended() && !host::can_start_requests()) asked.stream->await(*asked.ticket);
    if (asked.ticket->ended()) {
        if (const net::Status status = asked.ticket->status(); status != net::Status::Done) {
            const Fault fault = window.settle(asked.target);  // told now, so not once more
            return fault != Fault::None ? fault : agent::fault_of(status, asked.target);
        }
        host_error = host::completed_request(request);
        return Fault::None;
    }
    auto* const open = new Open(window, std::move(asked));
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
