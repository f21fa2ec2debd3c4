#include "net/channels/fabric_sender.h"

#include <cstring>
#include <iterator>
#include <utility>

#include "trace/recorder.h"

namespace osc::net {

static_assert(static_cast<std::size_t>(FrameKind::LookUp) + 1 == std::size(trace::kMessages));

void FabricSender::open(fabric::Endpoint& endpoint, const ProcessAddress& mine) {
    endpoint_ = &endpoint;
    mine_ = mine;
}

Message* FabricSender::claim() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) make_messages();
    Message* message = free_.back();
    free_.pop_back();
    message->bytes = 0;
    return message;
}

Message* FabricSender::claim(const void* body, std::size_t bytes) {
    Message* message = claim();
    std::memcpy(message->body(), body, bytes);
    message->bytes = bytes;
    return message;
}

// Under mutex_. A device has few registrations, so only the first messages keep one.
void FabricSender::make_messages() {
    constexpr std::size_t kTogether = 8;
    constexpr std::size_t kPinned = 4;
    constexpr std::size_t kLine = 64;
    const std::size_t bytes = (endpoint_->largest_message() + kLine - 1) / kLine * kLine;
    Block made{std::make_unique<Message[]>(kTogether),
               std::make_unique_for_overwrite<std::byte[]>(kTogether * bytes + kLine)};
    void* first = made.data.get();
    std::size_t room = kTogether * bytes + kLine;
    auto* const data = static_cast<std::byte*>(std::align(kLine, kTogether * bytes, first, room));
    blocks_.reserve(blocks_.size() + 1);
    free_.reserve(kTogether * (blocks_.size() + 1));  // give_back() takes no memory
    void* const pinned = blocks_.size() < kPinned ? endpoint_->pin(data, kTogether * bytes) : nullptr;
    for (std::size_t i = 0; i < kTogether; ++i) {
        Message& message = made.messages[i];
        message.operation.ended = &FabricSender::sent;
        message.operation.pinned = pinned;
        message.sender = this;
        message.data = data + i * bytes;
        free_.push_back(&message);
    }
    blocks_.push_back(std::move(made));
}

void FabricSender::give_back(Message* message) {
    const std::lock_guard lock(mutex_);
    free_.push_back(message);
}

void FabricSender::send(Connection& to, const Frame& frame, Message* message, When when) {
    trace::Span span(trace::pack(trace::Kind::Send, static_cast<std::uint8_t>(frame.kind),
                                 static_cast<std::uint32_t>(message->bytes)));
    Frame header = frame;
    header.secret = to.secret;
    header.sender = mine_.token;
    header.bytes = static_cast<std::uint32_t>(message->bytes);
    std::memcpy(message->data, &header, sizeof header);
    message->connection = &to;
    const std::lock_guard order(to.lane.sending);
    if (to.lacks_address.load(std::memory_order_relaxed)) introduce(to);
    const std::uint64_t number = to.lane.sent++;
    if (trace::is_open()) span.set_value(trace::flow_of(mine_.token, to.token, number));
    if (has_piggybacks()) message = join_piggyback(message);
    if (when == When::Now) return send_in_order(message);
    const std::lock_guard lock(mutex_);
    to.lane.piggyback = message;
    base::insist([&] { with_piggyback_.add(to); });
}

// Sends this process's own address. Under the lane's `sending`.
void FabricSender::introduce(Connection& to) {
    to.lacks_address.store(false, std::memory_order_relaxed);
    Message* const hello = base::insist([&] { return claim(&mine_, sizeof mine_); });
    const Frame frame{.kind = FrameKind::Hello,
                      .secret = to.secret,
                      .sender = mine_.token,
                      .bytes = static_cast<std::uint32_t>(hello->bytes)};
    std::memcpy(hello->data, &frame, sizeof frame);
    hello->connection = &to;
    ++to.lane.sent;
    send_in_order(hello);
}

void FabricSender::control(Connection& to, FrameKind kind, std::uint32_t number) {
    send(to, {.kind = kind, .number = number}, base::insist([this] { return claim(); }));
}

// Returns the peer's piggyback with `message` behind it, as one message. A piggyback without room for it, or before a
// message without a body (see post()), goes ahead. Under the lane's `sending`.
Message* FabricSender::join_piggyback(Message* message) {
    Message* piggyback = take_piggyback(*message->connection);
    if (piggyback == nullptr) return message;
    const std::size_t more = sizeof(Frame) + message->bytes;
    if (message->bytes == 0 || sizeof(Frame) + piggyback->bytes + more > endpoint_->largest_message()) {
        send_in_order(piggyback);
        return message;
    }
    std::memcpy(piggyback->body() + piggyback->bytes, message->data, more);
    piggyback->bytes += more;
    give_back(message);
    return piggyback;
}

Message* FabricSender::take_piggyback(Connection& to) {
    const std::lock_guard lock(mutex_);
    Message* piggyback = std::exchange(to.lane.piggyback, nullptr);
    if (piggyback != nullptr) with_piggyback_.remove(to);
    return piggyback;
}

void FabricSender::send_piggybacks() {
    while (has_piggybacks()) {
        Connection* to = nullptr;
        {
            const std::lock_guard lock(mutex_);
            if (!with_piggyback_.all.empty()) to = with_piggyback_.all.front();
        }
        if (to == nullptr) return;
        const std::lock_guard order(to->lane.sending);
        if (Message* message = take_piggyback(*to); message != nullptr) send_in_order(message);
    }
}

// Under the lane's `sending`.
void FabricSender::send_in_order(Message* message) {
    Connection& to = *message->connection;
    const auto keep = [&] {
        base::insist([&] { to.lane.unsent.push_back(message); });
        if (to.lane.unsent.size() == 1) base::insist([&] { stuck_.add(to); });
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
    // The network thread may have fallen asleep, for long, before it could see this. And the provider may have moved
    // arrivals in its call, which no event announces.
    engine_.wake_thread();
}

void FabricSender::retry_unsent() {
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
    return stuck_.all;
}

bool FabricSender::is_stuck(const Connection& to) {
    if (!has_unsent()) return false;
    const std::lock_guard lock(mutex_);
    return !to.lane.unsent.empty();
}

void FabricSender::sent(fabric::Operation& operation, int error) {
    auto& message = reinterpret_cast<Message&>(operation);
    FabricSender& sender = *message.sender;
    Connection& to = *message.connection;
    sender.give_back(&message);
    if (error != 0) sender.failures_.failed(to);
}

// False: the provider has no room now, or the connection has failed and its end is not settled yet.
bool FabricSender::post(Message* message) {
    Connection& to = *message->connection;
    if (to.failed.load(std::memory_order_acquire)) {
        const bool ended = to.ended();
        if (ended) give_back(message);
        return ended;
    }
    const std::size_t bytes = sizeof(Frame) + message->bytes;
    // The provider reports no failure of a copy, so a message without a body, such as a ping, is not copied.
    const bool copied = bytes <= endpoint_->largest_copied() && message->bytes > 0;
    const fabric::Posted posted = copied ? endpoint_->send_copied(to.peer, message->data, bytes)
                                         : endpoint_->send(to.peer, message->data, bytes, message->operation);
    if (posted == fabric::Posted::Again) {
        count(counts_.retries);
        return false;
    }
    count(counts_.messages);
    if (copied || posted != fabric::Posted::Yes) give_back(message);
    if (posted == fabric::Posted::Yes) return true;
    // No message may overtake one that this process had no memory for, so none follows.
    if (posted == fabric::Posted::NoMemory)
        failures_.no_memory(to);
    else
        failures_.failed(to);
    return true;
}

}  // namespace osc::net
