// Filling message slots, sending them, and awaiting the replies.
#include "net/origin/agent_transport.h"

#include <cstring>
#include <utility>

#include "trace/recorder.h"

namespace osc::net {

std::byte* AgentTransport::add(const Record& record, std::size_t segments) {
    if (fault_ != Fault::None) return nullptr;
    const std::size_t needed = sizeof(Record) + padded(carried(record));
    const std::size_t back = padded(returned(record));
    if (filling_ != Outbox::kNone && bytes_ + reply_bytes_ + needed + back > kMessageBody) send();
    if (filling_ == Outbox::kNone && !claim()) return nullptr;
    auto& expected = outbox_.segments(filling_);
    if (back != 0 && expected.capacity() - expected.size() < segments) expected.reserve(2 * expected.size() + segments);
    std::byte* const at = outbox_.slot(filling_).body + bytes_;
    std::memcpy(at, &record, sizeof record);
    bytes_ += needed;
    reply_bytes_ += back;
    return at + sizeof record;
}

void AgentTransport::returns(const ReplySegment& segment) {
    outbox_.segments(filling_).push_back(segment);
    returns_data_ = true;
}

bool AgentTransport::claim() {
    bytes_ = 0;
    reply_bytes_ = 0;
    filling_ = outbox_.try_claim();
    // The messages that the outbox tracks are the oldest. Behind them this object awaits its own.
    while (filling_ == Outbox::kNone && outbox_.reap())
        filling_ = outbox_.try_claim();
    while (filling_ == Outbox::kNone && count_ > 0) {
        await_oldest();
        if (fault_ != Fault::None) return false;
        filling_ = outbox_.try_claim();
    }
    // Without any of its own it waits for other threads, which wait for agents only.
    if (filling_ == Outbox::kNone) filling_ = outbox_.claim();
    return true;
}

void AgentTransport::send() {
    const std::uint32_t number = std::exchange(filling_, Outbox::kNone);
    MessageSlot& slot = outbox_.slot(number);
    slot.flow = trace::is_open() ? trace::new_flow() : 0;
    const trace::Span span(trace::pack(trace::Kind::AskAgent, 0, static_cast<std::uint32_t>(bytes_)), slot.flow);
    slot.window = window_;
    slot.bytes = bytes_;
    slot.state.store(MessageState::Sent, std::memory_order_relaxed);
    if (!push(*route_.box, route_.sender_slot, number)) {
        if (fault_ == Fault::None) fault_ = base::fail(Fault::Dead, "the agent of rank %u has ended", rank_);
        outbox_.give_back(number);
        return;
    }
    if (incomplete_ != nullptr && !returns_data_)
        outbox_.track({number, rank_, &route_, incomplete_});
    else
        in_flight_[(first_ + count_++) % kMessageSlots] = number;
}

void AgentTransport::await_oldest() {
    const std::uint32_t number = in_flight_[first_];
    first_ = (first_ + 1) % kMessageSlots;
    --count_;
    const Status status = outbox_.await_reply(number, route_);
    if (fault_ == Fault::None) fault_ = fault_of(status, rank_);
    const MessageSlot& slot = outbox_.slot(number);
    if (fault_ == Fault::None) store_reply(outbox_.segments(number), slot.body + slot.bytes, kMessageBody - slot.bytes);
    outbox_.give_back(number);
}

Fault AgentTransport::finish() {
    if (filling_ != Outbox::kNone) send();
    while (count_ > 0)
        await_oldest();
    return fault_;
}

}  // namespace osc::net
