#include "net/origin/flow_control.h"

#include "base/clock.h"

namespace osc::net {
namespace {

constexpr std::int64_t kLookEvery = 100000000;  // ns between two of look()'s tests for a dead target
constexpr std::int64_t kLeftTo = 1000000000;    // ns that the provider has to fail transfers of an ended connection

}  // namespace

// True if the connection ended so long ago that the provider will not complete its transfers.
bool FlowControl::gone(std::int64_t& since) {
    if (network_.messenger.alive(to_)) {
        since = 0;
        return false;
    }
    const std::int64_t now = now_ns();
    if (since == 0) since = now;
    return now - since > kLeftTo;
}

// The messenger fails a dead peer's requests at once, and the provider fails its transfers. Transfers that have not
// ended after kLeftTo belong to the provider for ever, with the memory that it may still access.
void FlowControl::wait_until(base::FunctionRef<bool()> done) {
    const auto over = [&] { return abandoned_.load(std::memory_order_acquire) || done(); };
    if (over()) return;
    const shm::WaitScope waits = scope();
    bool ended = false;
    {
        const Released released(*this);
        std::int64_t since = 0;
        ended = network_.engine.wait(over, [&] { return gone(since); });
    }
    if (ended) return;
    abandoned_.store(true, std::memory_order_release);
    faults.note(to_.end.load(std::memory_order_acquire));
    advance();
}

bool FlowControl::look(Completion& completion) {
    if (completion.ended()) return true;
    network_.engine.poll();
    if (completion.ended()) return true;
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (const std::int64_t now = now_ns(); lock.owns_lock() && now - looked_ > kLookEvery) {
        looked_ = now;
        if (gone(gone_since_)) completion.give_up(to_.end.load(std::memory_order_acquire));
    }
    return completion.ended();
}

void FlowControl::await(Completion& completion) {
    const shm::WaitScope waits = scope();
    std::int64_t since = 0;
    if (!network_.engine.wait([&] { return completion.ended(); }, [&] { return gone(since); }))
        completion.give_up(to_.end.load(std::memory_order_acquire));
}

void FlowControl::dispatch(FrameKind kind, SendQueue::When when) {
    if (messages.filling() && messages.dispatch(kind, when)) advance();
}

void FlowControl::push(FrameKind kind) {
    dispatch(kind);
    const std::uint64_t issued = messages.issued();
    wait_until([this, issued] { return messages.launched(issued); });
}

void FlowControl::queue_message(FrameKind kind) {
    if (!messages.filling()) return;
    if (messages.queued() >= kMostQueued * fabric::kLargestMessage / network_.endpoint().largest_message())
        push(kind);
    else
        dispatch(kind);
}

void FlowControl::await_started() {
    const std::uint64_t issued = transfers.issued();
    wait_until([this, issued] { return transfers.started(issued); });
}

void FlowControl::await_notifications() {
    const std::uint64_t deferred = deferred_;
    wait_until([this, deferred] { return notified_.load(std::memory_order_seq_cst) >= deferred; });
}

void FlowControl::await_issued() {
    await_notifications();
    const std::uint64_t sent = messages.issued();
    const std::uint64_t begun = transfers.issued();
    wait_until([this, sent, begun] { return messages.ended(sent) && transfers.ended(begun); });
}

void FlowControl::confirm() {
    if (is_confirmed()) return;
    push();
    wait_until([this] { return is_confirmed(); });
}

// True if it started or launched anything.
bool FlowControl::proceed() {
    const bool sent = messages.proceed();
    const bool started = transfers.proceed(is_confirmed(), refused());
    return proceed_notifications() || started || sent;
}

bool FlowControl::notify_later(std::uint32_t counter) {
    if (!notifies_later() && transfers.ended(transfers.issued())) return false;
    notifications_.push_back({counter, transfers.issued()});
    ++deferred_;
    advance();
    if (notifications_.size() > kMostQueued) await_notifications();
    return true;
}

// The target may wait for nothing but a notification, so its message goes at once.
bool FlowControl::proceed_notifications() {
    bool any = false;
    while (notifies_later() && transfers.ended(notifications_.front().transfers)) {
        const Record record{Opcode::Notify, Basic::None, Op::None, 0, 0, notifications_.front().counter};
        if (messages.filling() && !messages.fits(record)) messages.dispatch(FrameKind::Request, SendQueue::When::Now);
        if (!messages.filling()) messages.begin();
        messages.append(record);
        messages.dispatch(FrameKind::Request, SendQueue::When::Now);
        notifications_.pop_front();
        notified_.fetch_add(1, std::memory_order_seq_cst);
        any = true;
    }
    return any;
}

void FlowControl::advance() {
    bool any = proceed();
    if (!enlisted_.load(std::memory_order_relaxed) && is_deferred()) {
        enlisted_.store(true, std::memory_order_relaxed);
        network_.engine.backlog().enlist(*this);
        any = proceed() || any;  // an event may have come before the backlog had this stream
    }
    if (any) network_.engine.ring();
}

progress::DeferredWork::Left FlowControl::resume() {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return Left::Busy;
    if (proceed()) network_.engine.ring();
    if (is_deferred()) return transfers.no_room() ? Left::Busy : Left::Work;
    enlisted_.store(false, std::memory_order_release);  // the last use of the stream by this thread
    return Left::Nothing;
}

void FlowControl::mark() {
    if (!std::exchange(marked_, true)) incomplete_.fetch_add(1, std::memory_order_seq_cst);
}

// Other threads complete the operations that they issued meanwhile.
Fault FlowControl::settle() {
    const bool nothing = !messages.filling() && !is_deferred() && all_ended();
    if ((nothing || abandoned_) && std::exchange(marked_, false)) incomplete_.fetch_sub(1, std::memory_order_seq_cst);
    return faults.take();
}

bool FlowControl::abandon() {
    if (!abandoned_) return false;
    network_.engine.backlog().withdraw(*this);
    return true;
}

}  // namespace osc::net
