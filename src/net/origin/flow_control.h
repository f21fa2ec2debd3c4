// Flow control of one stream. It bounds the messages and direct transfers in flight, defers the rest, and lets threads
// wait for their ends.
//
// A message without a free place, and a transfer that must wait for the target's lock, are deferred; the engine's
// backlog resumes them. An operation with a completion waits for nothing.
//
// Threads: the mutex guards the stream, and a thread releases it before it waits. A wait in the middle of an operation
// lets other threads' operations in, and waits for what was issued until then, by serial numbers.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <utility>

#include "net/origin/rdma_queue.h"
#include "net/origin/send_queue.h"

namespace osc::net {

inline constexpr std::uint32_t kNoNotification = ~std::uint32_t{0};

/// One class, because a stream's messages and transfers start, are awaited and end under one mutex, which every wait
/// releases. Under the mutex, unless said otherwise.
class FlowControl final : public progress::DeferredWork {
  public:
    /// `incomplete` counts streams that have something in flight.
    FlowControl(NetworkStack& network, Connection& to, std::uint64_t window, std::uint32_t me, std::uint32_t target,
                std::atomic<std::uint32_t>& incomplete)
        : faults(target),
          messages(network, to, window, me, faults),
          transfers(network, to, faults, regions),
          network_(network),
          to_(to),
          window_(window),
          me_(me),
          target_(target),
          incomplete_(incomplete) {}
    ~FlowControl() { network_.engine.backlog().withdraw(*this); }
    FlowControl(const FlowControl&) = delete;
    FlowControl& operator=(const FlowControl&) = delete;

    std::mutex& mutex() { return mutex_; }

    /// The state of one operation of one thread.
    struct Operation {
        SharedCompletion completion;                   // or null
        bool answers_now = false;                      // the operation needs its result before finish() returns
        std::uint32_t notification = kNoNotification;  // the counter of the target that rises behind the operation
    };
    /// Releases the mutex, for a wait. The operation is set aside, because other threads' operations may come in.
    class Released {
      public:
        explicit Released(FlowControl& flow) : flow_(flow), operation_(std::exchange(flow.operation, {})) {
            flow_.mutex_.unlock();
        }
        ~Released() {
            flow_.mutex_.lock();
            flow_.operation = std::move(operation_);
        }
        Released(const Released&) = delete;
        Released& operator=(const Released&) = delete;

      private:
        FlowControl& flow_;
        Operation operation_;
    };

    // Operations with a request.
    /// Gives the next operation a completion, until issued().
    SharedCompletion issue() { return operation.completion = std::make_shared<Completion>(); }
    void issued() { std::exchange(operation.completion, nullptr)->end(Status::Done); }
    /// Polls once; true if the operation has ended. Gives the completion up if the target is dead. The caller does not
    /// hold the mutex, as for await().
    bool look(Completion& completion);
    void await(Completion& completion);

    /// Ends the message that is being filled: it goes now, or is deferred until there is room.
    void dispatch(FrameKind kind = FrameKind::Request, SendQueue::When when = SendQueue::When::Now);
    /// The same, and waits until it is in flight: a thread that issues faster than the target answers waits here.
    void push(FrameKind kind = FrameKind::Request);
    /// dispatch(), or push() if too many messages are deferred.
    void queue_message(FrameKind kind = FrameKind::Request);
    /// Starts a direct transfer, or defers it.
    void start(RdmaRequest&& request) { transfers.add(std::move(request), is_confirmed(), refused()); }
    /// Waits until all transfers have started, or ended.
    void await_started();
    /// Sends as many messages and starts as many transfers as there is room for; the backlog resumes the rest.
    void advance();
    /// False if no direct transfer is in flight. Else notifies the target's counter when those issued until now have
    /// ended: their data is complete at the target then.
    bool notify_later(std::uint32_t counter);
    /// Whether a notification waits for transfers.
    bool notifies_later() const { return !notifications_.empty(); }

    /// is_confirmed(): the target has granted the requested lock, if any, and has made the fence. confirm() waits for
    /// it.
    bool is_confirmed() const { return messages.confirmed() || abandoned_; }
    void confirm();
    /// all_ended(): everything issued has ended. await_issued() waits for it.
    bool all_ended() const {
        return !notifies_later() && messages.ended(messages.issued()) && transfers.ended(transfers.issued());
    }
    void await_issued();
    /// Called after something was issued: the stream counts in `incomplete` until settle() finds that everything has
    /// ended.
    void mark();
    Fault settle();
    bool is_deferred() const {
        return messages.queued() > 0 || transfers.deferred() > 0 || messages.leaves_soon() || notifies_later();
    }
    /// Whether a polling thread may resume deferred work. If not, only the program's threads use the stream, until one
    /// of them defers something.
    bool is_enlisted() const { return enlisted_.load(std::memory_order_acquire); }

    /// True if a wait was given up: the provider may still use this object, so the caller must not destroy it. The
    /// caller does not hold the mutex.
    bool abandon();

    FirstFault faults;
    RegionCache regions;
    SendQueue messages;
    RdmaQueue transfers;
    Operation operation;
    bool under_lock = false;  // requested, and not released

  private:
    struct Notification {
        std::uint32_t counter;
        std::uint64_t transfers;  // the serial of the last transfer that it waits for
    };
    // Messages of the greatest length, and notifications; then operations with completions wait as well.
    static constexpr std::size_t kMostQueued = 2048;

    void wait_until(base::FunctionRef<bool()> done);
    shm::WaitScope scope() const { return {shm::WaitKind::Operations, window_, me_, target_}; }
    bool gone(std::int64_t& since);
    bool refused() const { return under_lock && messages.refused(); }
    bool proceed_notifications();
    void await_notifications();
    bool proceed();
    Left resume() override;

    NetworkStack& network_;
    Connection& to_;
    const std::uint64_t window_;
    const std::uint32_t me_;
    const std::uint32_t target_;
    std::atomic<std::uint32_t>& incomplete_;
    std::mutex mutex_;
    std::deque<Notification> notifications_;  // that wait, in order
    std::uint64_t deferred_ = 0;              // how many have ever waited
    std::atomic<std::uint64_t> notified_{0};  // how many of them are in messages
    bool marked_ = false;
    std::atomic<bool> enlisted_{false};   // in the engine's backlog
    std::int64_t looked_ = 0;             // when look() last looked for a sign of life
    std::int64_t gone_since_ = 0;         // when look() first found none
    std::atomic<bool> abandoned_{false};  // a transfer may stay in flight for ever
};

}  // namespace osc::net
