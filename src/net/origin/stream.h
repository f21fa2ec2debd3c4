// What one process sends to one target of one window over the network, in order: operations and synchronisation.
// Operations share messages (SendQueue), and large ones go directly between the two memories (RdmaQueue). The stream
// bounds what is in flight, defers the rest, and lets threads wait for the ends.
//
// An operation passes these steps; each line names the class and the state that the step leaves:
//   place           Stream         a record in the message that is being filled; or a direct transfer (transfer)
//   send_off        Stream         the message is a direct transfer, if it is one put or get alone; else:
//   dispatch        SendQueue      it has a place in flight, or waits in the queue
//   request         Messenger      it has a number, by which its reply finds the place
//   send            FabricSender   it is posted behind all earlier messages to the process
//   await_issued    Stream         all that was issued has ended: replies are stored (MessagePlace::answered)
//   settle          Stream         nothing is in flight, and the caller has the first fault
//
// A message is sent when it is full, or when the program waits for its operations. So small operations share messages
// (the buffered protocol), and a lock, an operation and the unlock are one message and one reply. An operation with a
// completion that returns data is sent at once.
//
// A message without a free place, and a transfer that must wait for the target's lock, are deferred; the engine's
// backlog resumes them. An operation with a completion waits for nothing.
//
// Threads: the mutex guards the stream, and a thread releases it before it waits. A wait in the middle of an operation
// lets other threads' operations in, and waits for what was issued until then, by serial numbers.
//
// This is one class, because messages and transfers start, are awaited and end under one mutex, which every wait
// releases.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>

#include "net/origin/rdma_queue.h"
#include "net/origin/record_transport.h"
#include "net/origin/send_queue.h"
#include "net/origin/target_queries.h"
#include "op/simple.h"
#include "sync/costs.h"

namespace osc::net {

/// How operations travel; see OSC_DEBUG=net_protocol.
enum class Protocol : std::uint8_t {
    Auto,
    Messages,  // each operation in a message of its own
    Buffered,  // gathered
    Direct,    // puts and gets by the provider's write and read
};

/// Under the mutex, unless said otherwise.
class Stream final : public RecordTransport, public progress::DeferredWork {
  public:
    /// `incomplete` counts streams that have something in flight. `fence`: the target executes the messages when it has
    /// made its fence of this number.
    Stream(const StreamRoute& its_route, Protocol protocol, std::atomic<std::uint32_t>& incomplete,
           const std::atomic<std::uint64_t>& fence);
    ~Stream() override;

    /// The state of one operation of one thread.
    struct CallState {
        SharedCompletion completion;                   // or null
        bool answers_now = false;                      // the operation needs its result before finish() returns
        std::uint32_t notification = kNoNotification;  // the counter of the target that rises behind the operation
        bool went_directly = false;                    // some of its bytes go by the provider's write, read or atomic
    };
    /// Releases the mutex, for a wait. The operation is set aside, because other threads' operations may come in.
    class Released {
      public:
        explicit Released(Stream& stream) : stream_(stream), operation_(std::exchange(stream.operation, {})) {
            stream_.mutex.unlock();
        }
        ~Released() {
            stream_.mutex.lock();
            stream_.operation = std::move(operation_);
        }
        Released(const Released&) = delete;
        Released& operator=(const Released&) = delete;

      private:
        Stream& stream_;
        CallState operation_;
    };

    void move(bool write, std::int64_t disp, void* memory, std::size_t bytes) override;
    bool gathers(const op::Cursor& target) const override {
        return (protocol_ == Protocol::Auto || protocol_ == Protocol::Buffered) && RecordTransport::gathers(target);
    }
    /// Ends the operation. Waits only for a result that CallState::answers_now asks for.
    Fault finish() override;

    /// Adds an operation to the message that is being filled, without a completion. False, with nothing done, if the
    /// general path must take it: the message is full, the target's window is dynamic or not known yet,
    /// the operation leaves the window, or goes directly. Takes the mutex, unless no other thread may use the stream:
    /// `threaded` says whether other threads of the program may.
    bool try_small(const op::Simple& simple, bool threaded);

    /// Whether a transfer of so many bytes goes directly, where it can.
    bool wants_direct(std::size_t bytes) const { return bytes >= direct_from_; }
    /// Writes or reads `bytes` at `address` with `key`, by a lease if there is one.
    void transfer(bool write, std::uint64_t address, std::uint64_t key, void* memory, std::size_t bytes,
                  RegionCache::Kept* entry);

    /// An atomic of the provider on a row of the target's elements, behind all accumulates by message.
    void update_row(std::unique_ptr<RowUpdate> update, std::uint64_t address, std::uint64_t key);
    /// The accumulate that follows goes by message, behind the atomics of the provider that are in flight.
    void accumulate_by_message();

    /// Requests the target's lock: later operations execute under it.
    void lock(LockAsk ask);
    /// Adds `end`, FenceClose, Complete or Unlock, behind all operations.
    void end_epoch(Opcode end);
    /// The same, and sends it. `awaited`: the caller awaits the reply next.
    void close(Opcode end, SendQueue::When when, bool awaited);

    // Operations with a request.
    /// Gives the next operation a completion, until issued().
    SharedCompletion issue() { return operation.completion = std::make_shared<Completion>(); }
    void issued() { std::exchange(operation.completion, nullptr)->end(Status::Done); }
    /// Polls once; true if the operation has ended. Gives the completion up if the target is dead. The caller does not
    /// hold the mutex, as for await().
    bool look(Completion& completion);
    void await(Completion& completion);

    /// Sends the gathered operations; the caller completes them next.
    void send_off();
    /// The same, and waits for what was issued until now: the first fault that was met.
    Fault complete_ops();
    /// The same if something in flight reads or writes this process's memory. Else sends the gathered operations and
    /// awaits nothing: they must reach the target without a further call of this process (12.7.3).
    Fault complete_local();
    /// The traffic since the last call. Takes the mutex.
    sync::Traffic take_traffic();
    /// Makes operations in flight write no memory from now on. Takes the mutex; the caller holds the drive lock.
    void forget_results();

    /// Sends as many messages and starts as many transfers as there is room for; the backlog resumes the rest.
    void advance();
    /// Whether a message is deferred.
    bool sends_later() const { return messages_.waiting() > 0; }
    /// Whether a notification waits for transfers.
    bool notifies_later() const { return !notifications_.empty(); }
    /// Whether a polling thread may resume deferred work. If not, only the program's threads use the stream, until one
    /// of them defers something.
    bool is_enlisted() const { return enlisted_.load(std::memory_order_acquire); }
    /// is_confirmed(): the target has granted the requested lock, if any, and has made the fence. confirm() waits for
    /// it.
    bool is_confirmed() const { return messages_.confirmed() || abandoned_; }
    void confirm();
    /// True if a wait was given up: the provider may still use this object, so the caller must not destroy it. The
    /// caller does not hold the mutex.
    bool abandon();

    std::mutex mutex;
    TargetQueries queries{*this};
    const StreamRoute route;
    StreamFault faults;
    RegionCache regions;
    CallState operation;

  private:
    struct Notification {
        std::uint32_t counter;
        std::uint64_t transfers;  // the serial of the last transfer that it waits for
    };
    // Behind so many, operations with completions wait as well.
    static constexpr std::size_t kMostQueued = 2048;                        // notifications
    static constexpr std::size_t kMostQueuedBytes = std::size_t{64} << 20;  // of messages

    // One of so many full messages that return nothing is answered at once, the others with a delay.
    static constexpr std::uint32_t kAnswered = 4;

    using RecordTransport::add;
    std::byte* add(const Record& record, std::size_t segments) override;
    std::byte* place(const Record& record, std::size_t carries, std::size_t returns);
    void returns(const ReplySegment& segment) override;
    void begin();
    void notify();
    bool send_alone();
    void begin_direct(bool may_wait);
    void await_room();
    bool transfer_directly(bool write, std::int64_t disp, void* memory, std::size_t bytes);

    /// Ends the message that is being filled: it goes now, or is deferred until there is room.
    void send(FrameKind kind = FrameKind::Request, SendQueue::When when = SendQueue::When::Now);
    /// The same, and waits until it is in flight: a thread that issues faster than the target answers waits here.
    void push(FrameKind kind = FrameKind::Request);
    /// send(), or push() if too many messages are deferred.
    void queue_message(FrameKind kind = FrameKind::Request);
    /// Starts a direct transfer, or defers it.
    void start(RdmaRequest&& request) { transfers_.add(std::move(request), is_confirmed(), refused()); }
    /// False if no direct transfer is in flight. Else notifies the target's counter when those issued until now have
    /// ended: their data is complete at the target then.
    bool notify_later(std::uint32_t counter);
    bool is_deferred() const {
        return messages_.waiting() + transfers_.waiting() + notifications_.size() > 0 || messages_.leaves_soon();
    }
    bool proceed_notifications();
    bool proceed();
    Left resume() override;

    /// Called after something was issued: the stream counts in `incomplete` until settle() finds that everything has
    /// ended.
    void mark();
    Fault settle();
    bool all_ended() const {
        return notifications_.empty() && messages_.ended(messages_.issued()) && transfers_.ended(transfers_.issued());
    }
    /// Waits until everything issued has ended.
    void await_issued();
    /// Waits until all transfers have started, or ended.
    void await_started();
    void await_notifications();
    void wait_until(base::FunctionRef<bool()> done);
    bool gone(std::int64_t& since);
    bool refused() const { return under_lock_ && messages_.refused(); }

    const Protocol protocol_;
    const std::size_t direct_from_;
    const std::atomic<std::uint64_t>& fence_;
    std::atomic<std::uint32_t>& incomplete_;
    SendQueue messages_;
    RdmaQueue transfers_;
    bool under_lock_ = false;                 // requested, and not released
    std::uint64_t awaited_fence_ = 0;         // in the last FenceOpen
    std::uint32_t full_ = 0;                  // messages, since the window was made
    std::uint64_t accumulates_ = 0;           // the serial of the last message with an accumulate
    std::uint64_t rows_ = 0;                  // the serial of the last atomic on a row
    std::uint64_t direct_bytes_ = 0;          // see take_traffic
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
