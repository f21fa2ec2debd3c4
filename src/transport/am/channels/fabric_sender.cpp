#include "transport/am/channels/fabric_sender.h"

#include <cstring>
#include <iterator>
#include <utility>

#include "base/warn.h"
#include "trace/recorder.h"

namespace osc::am {
namespace {

static_assert(static_cast<std::size_t>(FrameKind::Emptied) + 1 == std::size(trace::kMessages));

std::uint64_t described(FrameKind kind, std::size_t bytes) {
    return trace::pack(trace::Kind::Send, static_cast<std::uint8_t>(kind), static_cast<std::uint32_t>(bytes));
}

}  // namespace

void FabricSender::open(fabric::Endpoint& endpoint, std::uint64_t token) {
    endpoint_ = &endpoint;
    token_ = token;
}

Message* FabricSender::claim() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) make_messages();
    Message* message = free_.back();
    free_.pop_back();
    message->bytes = 0;
    return message;
}

// Under mutex_. A device has few registrations, so only the first messages keep one.
void FabricSender::make_messages() {
    constexpr std::size_t kTogether = 8;
    constexpr std::size_t kPinned = 4;
    auto made = std::make_unique_for_overwrite<Message[]>(kTogether);
    void* const pinned = blocks_.size() < kPinned ? endpoint_->pin(made.get(), kTogether * sizeof(Message)) : nullptr;
    for (std::size_t i = 0; i < kTogether; ++i) {
        made[i].operation.ended = &FabricSender::sent;
        made[i].operation.pinned = pinned;
        made[i].sender = this;
        free_.push_back(&made[i]);
    }
    blocks_.push_back(std::move(made));
}

void FabricSender::give_back(Message* message) {
    const std::lock_guard lock(mutex_);
    free_.push_back(message);
}

void FabricSender::address(Message* message, Connection& to, Frame frame) const {
    frame.secret = to.secret;
    frame.sender = token_;
    frame.bytes = static_cast<std::uint32_t>(message->bytes);
    std::memcpy(message->data, &frame, sizeof frame);
    message->connection = &to;
}

void FabricSender::send(Connection& to, const Frame& frame, Message* message, When when) {
    trace::Span span(described(frame.kind, message->bytes));
    address(message, to, frame);
    const std::lock_guard order(to.lane.sending);
    span.set_value(next_flow(to));
    message = join_piggyback(message);
    if (when == When::Now) return send_in_order(message);
    const std::lock_guard lock(mutex_);
    to.lane.piggyback = message;
    with_piggyback_.add(to);
}

void FabricSender::control(Connection& to, FrameKind kind, std::uint32_t number) {
    Frame frame;
    frame.kind = kind;
    frame.number = number;
    send(to, frame, claim());
}

// The number of the next frame's arrow in the timeline. Under the lane's `sending`.
std::uint64_t FabricSender::next_flow(Connection& to) const {
    const std::uint64_t count = to.lane.sent++;
    return trace::is_open() ? trace::flow_of(token_, to.token, count) : 0;
}

// Returns the peer's piggyback with `message` behind it, as one message. A piggyback without room for it goes ahead.
// Under the lane's `sending`.
Message* FabricSender::join_piggyback(Message* message) {
    Message* piggyback = take_piggyback(*message->connection);
    if (piggyback == nullptr) return message;
    const std::size_t more = sizeof(Frame) + message->bytes;
    if (piggyback->bytes + more > kBody) {
        send_in_order(piggyback);
        return message;
    }
    std::memcpy(piggyback->body() + piggyback->bytes, message->data, more);
    piggyback->bytes += more;
    give_back(message);
    return piggyback;
}

Message* FabricSender::take_piggyback(Connection& to) {
    if (!has_piggybacks()) return nullptr;
    const std::lock_guard lock(mutex_);
    Message* piggyback = std::exchange(to.lane.piggyback, nullptr);
    if (piggyback != nullptr) with_piggyback_.remove(to);
    return piggyback;
}

void FabricSender::send_piggybacks() {
    if (!has_piggybacks()) return;
    std::vector<Connection*> peers;
    {
        const std::lock_guard lock(mutex_);
        peers = with_piggyback_.all();
    }
    for (Connection* to : peers) {
        const std::lock_guard order(to->lane.sending);
        if (Message* message = take_piggyback(*to); message != nullptr) send_in_order(message);
    }
}

// Under the lane's `sending`.
void FabricSender::send_in_order(Message* message) {
    Connection& to = *message->connection;
    const auto keep = [&] {
        if (to.lane.unsent.empty()) stuck_.add(to);
        to.lane.unsent.push_back(message);
    };
    {
        const std::lock_guard lock(mutex_);
        if (!to.lane.unsent.empty()) return keep();
    }
    if (post(message)) return;
    {
        const std::lock_guard lock(mutex_);
        keep();
    }
    engine_.wake_thread();  // it may have fallen asleep, for long, before it could see this
}

void FabricSender::retry_unsent() {
    if (!has_unsent()) return;
    for (Connection* to : stuck_peers()) {
        for (bool more = true; more;) {
            Message* first = nullptr;
            {
                const std::lock_guard lock(mutex_);
                first = to->lane.unsent.front();
            }
            if (!post(first)) break;
            const std::lock_guard lock(mutex_);
            to->lane.unsent.pop_front();
            more = !to->lane.unsent.empty();
            if (!more) stuck_.remove(*to);
        }
    }
}

std::vector<Connection*> FabricSender::stuck_peers() {
    const std::lock_guard lock(mutex_);
    return stuck_.all();
}

void FabricSender::sent(fabric::Operation& operation, int error) {
    auto& message = reinterpret_cast<Message&>(operation);
    FabricSender& sender = *message.sender;
    Connection& to = *message.connection;
    sender.give_back(&message);
    if (error != 0) sender.handler_.lost(to);
}

// False: the provider has no room now.
bool FabricSender::post(Message* message) {
    Connection& to = *message->connection;
    fabric::Posted posted = fabric::Posted::Failed;
    if (!to.dead.load(std::memory_order_relaxed)) {
        // A ping has to fail if the peer is gone, and a write into its slots might not.
        const bool ping = static_cast<FrameKind>(message->data[offsetof(Frame, kind)]) == FrameKind::Ping;
        const bool by_slot = fits_slots(message->bytes) && !ping && to.lane.slots_out.begun() &&
                             to.lane.slots_out.has_room(sizeof(Frame) + message->bytes + sizeof(SlotHead));
        posted = by_slot ? post_to_slot(message) : post_ordinary(message);
    }
    if (posted == fabric::Posted::Again) {
        count(counts_.retries);
        engine_.wake_thread();  // the provider may have moved arrivals in this call, which no event announces
        return false;
    }
    count(counts_.messages);
    if (posted == fabric::Posted::NoMemory)
        base::warn_for_group(
            "the provider cannot register the memory of messages: raise the limit of locked memory "
            "(ulimit -l)");
    if (posted != fabric::Posted::Yes) {
        // The polling thread reports the loss: the caller may hold locks that the report takes.
        to.dead.store(true, std::memory_order_seq_cst);
        give_back(message);
        engine_.wake_thread();
    }
    return true;
}

// Gives back a message that was posted as a copy.
fabric::Posted FabricSender::post_ordinary(Message* message) {
    Connection& to = *message->connection;
    const auto kind = static_cast<FrameKind>(message->data[offsetof(Frame, kind)]);
    const std::size_t bytes = sizeof(Frame) + message->bytes;
    // The provider reports no failure of a copy, so a message without a body, such as a ping, is none.
    const bool copied = bytes <= endpoint_->largest_copied() && message->bytes > 0;
    const fabric::Posted posted = copied ? endpoint_->send_copied(to.peer, message->data, bytes)
                                         : endpoint_->send(to.peer, message->data, bytes, message->operation);
    if (posted != fabric::Posted::Yes) return posted;
    if (kind == FrameKind::Begin) to.lane.slots_out.begin();
    to.lane.slots_out.sent();
    if (copied) give_back(message);
    return posted;
}

// A single frame travels without its header, whose fields the slot's head has; several frames travel as they are.
fabric::Posted FabricSender::post_to_slot(Message* message) {
    Connection& to = *message->connection;
    EagerSlotsOut& slots = to.lane.slots_out;
    Frame frame;
    std::memcpy(&frame, message->data, sizeof frame);
    SlotHead head;
    std::byte* body = message->body();
    std::size_t bytes = message->bytes;
    if (frame.bytes == bytes) {
        head.kind = static_cast<std::uint8_t>(frame.kind);
        head.window = frame.window;
        head.origin = frame.origin;
        head.number = frame.number;
    } else {
        body = message->data;
        bytes += sizeof frame;
    }
    head.words = static_cast<std::uint16_t>(bytes / kAlign);
    if (EagerSlotsIn* mine = to.lane.slots_in.load(std::memory_order_acquire); mine != nullptr)
        head.emptied = mine->report_emptied();
    slots.complete(head);
    std::memcpy(body + bytes, &head, sizeof head);
    bytes += sizeof head;
    const bool copied = bytes <= endpoint_->largest_copied();
    const fabric::Posted posted = endpoint_->deposit(to.peer, body, bytes, slots.address(bytes), slots.key(),
                                                     copied ? nullptr : &message->operation);
    if (posted != fabric::Posted::Yes) return posted;
    slots.filled(bytes);
    count(counts_.deposits);
    if (copied) give_back(message);
    return posted;
}

// The Begin frame is a message of its own: the messages before and behind it count differently.
void FabricSender::use_slots(Connection& of, const SlotOffer& offer) {
    of.lane.slots_out.offered(offer);
    Frame begin;
    begin.kind = FrameKind::Begin;
    Message* message = claim();
    trace::Span span(described(begin.kind, 0));
    address(message, of, begin);
    const std::lock_guard order(of.lane.sending);
    span.set_value(next_flow(of));
    if (Message* piggyback = take_piggyback(of); piggyback != nullptr) send_in_order(piggyback);
    send_in_order(message);
}

}  // namespace osc::am
