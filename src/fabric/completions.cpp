// libosc_ofi.so: receives messages, ends operations, and sleeps until there are events.
#include <poll.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "base/descriptor.h"
#include "fabric/libfabric.h"

namespace osc::fabric {

bool Libfabric::post(Receive& receive) {
    const ssize_t result =
        fi_recv(endpoint_, receive.buffer, largest_message_,
                receive_memory_ != nullptr ? fi_mr_desc(receive_memory_) : nullptr, FI_ADDR_UNSPEC, &receive.operation);
    receive.posted = result == 0;
    return receive.posted || result == -FI_EAGAIN;
}

int Libfabric::process(const fi_cq_msg_entry* entries, ssize_t count, Receiver& receiver) {
    for (ssize_t i = 0; i < count; ++i) {
        const fi_cq_msg_entry& entry = entries[i];
        auto* operation = static_cast<Operation*>(entry.op_context);
        if ((entry.flags & FI_RECV) != 0) {
            auto& receive = *reinterpret_cast<Receive*>(operation);
            receiver.received(receive.buffer, entry.len);
            receive.posted = false;
            if (!post(receive) || !receive.posted) ++unposted_;
        } else if (operation != nullptr) {
            if (most_ > 0) in_flight_.fetch_sub(1, std::memory_order_relaxed);
            release(*operation, 0);
            operation->ended(*operation, 0);
        }
    }
    return static_cast<int>(count);
}

int Libfabric::process_error() {
    fi_cq_err_entry failure{};
    if (fi_cq_readerr(queue_, &failure, 0) <= 0) return 0;
    auto* operation = static_cast<Operation*>(failure.op_context);
    if (operation == nullptr) return 1;
    if ((failure.flags & FI_RECV) != 0) {
        auto& receive = *reinterpret_cast<Receive*>(operation);
        receive.posted = false;
        // The message was too long, or its sender died. Post its buffer again.
        if (failure.err == FI_ECANCELED || !post(receive) || !receive.posted) ++unposted_;
        return 1;
    }
    if (most_ > 0) in_flight_.fetch_sub(1, std::memory_order_relaxed);
    const int error = failure.err != 0 ? failure.err : FI_EIO;
    release(*operation, error);
    operation->ended(*operation, error);
    return 1;
}

int Libfabric::poll(Receiver& receiver) {
    close_revoked();
    if (unposted_ > 0)
        for (Receive& receive : receives_)
            if (!receive.posted && post(receive) && receive.posted) --unposted_;
    fi_cq_msg_entry entries[16];
    const ssize_t count = fi_cq_read(queue_, entries, std::size(entries));
    if (count > 0) return process(entries, count, receiver);
    return count == -FI_EAVAIL ? process_error() : 0;
}

void Libfabric::wake() {
    if (waker_ < 0) {
        fi_cq_signal(queue_);
        return;
    }
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(waker_, &one, sizeof one);  // fails only when it is set already
}

bool Libfabric::watch(int timer) {
    if (waker_ < 0 || (watched_ = base::above_stdio(::epoll_create1(EPOLL_CLOEXEC))) < 0) return false;
    for (const int descriptor : {descriptor_, waker_, timer}) {
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.fd = descriptor;
        if (::epoll_ctl(watched_, EPOLL_CTL_ADD, descriptor, &event) != 0) return false;
    }
    return true;
}

// Whether the queue's descriptor ends await().
bool Libfabric::listen(std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.fd = descriptor_;
    return ::epoll_ctl(watched_, EPOLL_CTL_MOD, descriptor_, &event) == 0;
}

bool Libfabric::may_sleep() {
    close_revoked();
    if (ignores_events_) ignores_events_ = !listen(EPOLLIN);
    fid* queue = &queue_->fid;
    return !ignores_events_ && fi_trywait(fabric_, &queue, 1) == 0;
}

void Libfabric::ignore_events() {
    ignores_events_ = listen(0);
}

bool Libfabric::await(int milliseconds) {
    epoll_event events[3];
    const int ready = ::epoll_wait(watched_, events, std::size(events), milliseconds);
    bool came = false;
    for (int i = 0; i < ready; ++i) {
        std::uint64_t count = 0;
        came = came || events[i].data.fd == descriptor_;
        if (events[i].data.fd == waker_) static_cast<void>(!::read(waker_, &count, sizeof count));
    }
    return came;
}

int Libfabric::sleep(int milliseconds, Receiver& receiver) {
    close_revoked();
    int ready = 0;
    if (waker_ >= 0) {
        fid* queue = &queue_->fid;
        if (fi_trywait(fabric_, &queue, 1) == 0) {
            pollfd both[] = {{descriptor_, POLLIN, 0}, {waker_, POLLIN, 0}};
            ::poll(both, 2, milliseconds);
            std::uint64_t count = 0;
            ready = both[0].revents != 0 ? 1 : 0;
            if (both[1].revents != 0 && ::read(waker_, &count, sizeof count) < 0) return 0;
        }
        return std::max(poll(receiver), ready);
    }
    fi_cq_msg_entry entry{};
    const ssize_t count = fi_cq_sread(queue_, &entry, 1, nullptr, milliseconds);
    if (count > 0) return process(&entry, count, receiver);
    return count == -FI_EAVAIL ? process_error() : 0;
}

}  // namespace osc::fabric
