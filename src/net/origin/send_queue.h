// The messages of a stream. The queue fills one message with records (append), gives it a place in flight or keeps it
// in order while all places are taken (dispatch, proceed), hands it to the messenger (launch), and copies the data of
// its reply to its destination (MessagePlace::answered).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "net/origin/completion.h"
#include "net/origin/record_transport.h"
#include "net/origin/stream_queue.h"

namespace osc::net {

class SendQueue;

/// A message that is being filled, or waits.
struct OutgoingMessage {
    Message* message = nullptr;
    bool confirms = false;  // SendQueue::must_confirm()
    FrameKind kind = FrameKind::Request;
    FabricSender::When when = FabricSender::When::Now;
    std::uint64_t serial = 0;
    std::vector<ReplySegment> segments;
    std::vector<SharedCompletion> completions;
};

/// A message in flight.
struct MessagePlace final : ReplyHandler {
    SendQueue* queue = nullptr;
    std::atomic<std::uint64_t> serial{0};
    bool confirms = false;
    std::vector<ReplySegment> segments;
    std::vector<SharedCompletion> completions;
    void answered(Status status, const std::byte* data, std::size_t bytes) override;
};

/// One class for the three states of a message, filling, queued and in flight: what the message awaits moves with it,
/// and uses_memory() and confirmed() look at all three. Under the stream's mutex, unless said otherwise.
class SendQueue : public StreamQueue<OutgoingMessage, MessagePlace, 8> {
  public:
    using When = FabricSender::When;

    SendQueue(const StreamRoute& route, StreamFault& faults);

    // The message that is being filled.
    bool filling() const { return filling_.message != nullptr; }
    std::size_t bytes() const { return filling_.message->bytes; }
    std::uint32_t records() const { return records_; }
    const Record& last() const { return last_; }
    bool awaits_data() const { return !filling_.segments.empty(); }
    bool awaits_completion() const { return !filling_.completions.empty(); }
    /// Makes the message leave as soon as there is room in flight, without a further call of the program.
    void send_soon() { soon_ = true; }
    bool leaves_soon() const { return soon_ || awaits_completion(); }
    /// Whether it has room for a record that carries so much, and its reply for what that returns.
    bool fits(std::size_t carries, std::size_t returns) const {
        return bytes() + sizeof(Record) + padded(carries) <= body_ &&
               returning_ + padded(returns) <= body_ - sizeof(ReplyHead);
    }
    void begin();
    /// Makes the target execute the message only after its fence of this number. Call directly after begin().
    void open_fence(std::uint64_t fence);
    /// Before append() of a record that returns something: the segment of expect() then needs no memory.
    void expect_more(std::size_t number = 1) {
        auto& segments = filling_.segments;
        if (segments.capacity() - segments.size() < number) segments.reserve(2 * segments.size() + 4 + number);
    }
    /// Adds a record to it, of which carried() and returned() are known; returns where the record's data goes.
    std::byte* append(const Record& record, std::size_t carries, std::size_t returns);
    /// Bytes that were added since the last call.
    std::uint64_t take_traffic() { return std::exchange(traffic_, 0); }
    /// Makes a put that follows the last record's a part of that record; false if it does not follow or fit.
    bool extend_put(std::int64_t disp, const std::byte* data, std::size_t bytes);
    /// Where the reply to the record added last goes, and the completion that it ends; null: none.
    void expect(const ReplySegment& segment, const SharedCompletion& completion);
    /// No direct access starts before this message is answered.
    void must_confirm();
    /// Takes the message, whose only record becomes a direct transfer and no longer counts as traffic here; `memory` is
    /// the record's data or its destination.
    Message* take_only_record(std::byte*& memory);
    /// Whether its only record could become a direct transfer: only a plain get may wait for the reply.
    bool has_only_record() const;

    /// Ends the message that is being filled, if there is one: it is in flight then, or waits for a place.
    void dispatch(FrameKind kind, When when);
    /// Launches queued messages, and the one being filled if it leaves_soon(); true if it launched any.
    bool proceed();

    /// Whether half of the places in flight are taken: few of the last messages were answered.
    bool is_half_full() const;
    /// Whether all messages with must_confirm() are answered. Thread-safe, like the next two.
    bool confirmed() const { return unconfirmed_.load(std::memory_order_acquire) == 0; }
    /// Whether the target has refused the lock, since accept_lock().
    bool refused() const { return refused_.load(std::memory_order_relaxed); }
    void accept_lock() { refused_.store(false, std::memory_order_relaxed); }

    /// Whether an outstanding reply will write this process's memory: of a message in flight, or of any message.
    bool awaits_data_in_flight() const { return segmented_.load(std::memory_order_acquire) != 0; }
    bool uses_memory() const;
    /// Makes replies write no memory from now on. The caller holds the drive lock.
    void forget_results();

  private:
    friend MessagePlace;

    bool launch(OutgoingMessage& message);
    void drop(OutgoingMessage& message, Status end);

    const std::size_t body_;  // bytes that a message, or its reply, has room for

    OutgoingMessage filling_;
    std::size_t returning_ = 0;                  // bytes that the reply to it will hold
    std::uint32_t records_ = 0;                  // in it
    bool soon_ = false;                          // it leaves as soon as there is room
    Record last_;                                // of them
    std::atomic<std::uint32_t> unconfirmed_{0};  // messages with `confirms` that are not answered
    std::atomic<bool> refused_{false};
    std::atomic<std::uint32_t> segmented_{0};  // places with segments
    std::uint64_t traffic_ = 0;
};

}  // namespace osc::net
