// Posting a message, by a slot of its receiver or as the provider's own; and what comes through slots.
#include <cstring>

#include "agent/network.h"

namespace osc::net {

// Frees what was posted as a copy.
ofi::Posted Network::post_ordinary(Message* message) {
    Connection& to = *message->connection;
    Frame frame;
    std::memcpy(&frame, message->data, sizeof frame);
    const std::size_t bytes = sizeof frame + message->bytes;
    // What became of a copied message is not told: a ping is to fail if the peer is gone.
    const bool copied = bytes <= endpoint_->largest_copied() && message->bytes > 0;
    const ofi::Posted posted = copied ? endpoint_->send_copied(to.peer, message->data, bytes)
                                      : endpoint_->send(to.peer, message->data, bytes, message->operation);
    if (posted != ofi::Posted::Yes) return posted;
    if (frame.kind == FrameKind::Begin) to.slots_out.begin();
    to.slots_out.sent();
    if (copied) give_back(message);
    return posted;
}

ofi::Posted Network::post_to_slot(Message* message) {
    Connection& to = *message->connection;
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
    head.words = static_cast<std::uint8_t>(bytes / kAlign);
    if (SlotsIn* slots = to.slots_in.load(std::memory_order_acquire); slots != nullptr) head.emptied = slots->tell();
    to.slots_out.complete(head);
    std::memcpy(body + bytes, &head, sizeof head);
    bytes += sizeof head;
    const bool copied = bytes <= endpoint_->largest_copied();
    const ofi::Posted posted = endpoint_->deposit(to.peer, body, bytes, to.slots_out.address(bytes), to.slots_out.key(),
                                                  copied ? nullptr : &message->operation);
    if (posted != ofi::Posted::Yes) return posted;
    to.slots_out.filled();
    counts_.deposits.fetch_add(1, std::memory_order_relaxed);
    if (copied) give_back(message);
    return posted;
}

// False: to be tried again.
bool Network::post(Message* message) {
    Connection& to = *message->connection;
    ofi::Posted posted = ofi::Posted::Failed;
    if (!to.dead.load(std::memory_order_relaxed)) {
        // Of a slot that nobody reads any more nothing is told either.
        const bool ping = static_cast<FrameKind>(message->data[offsetof(Frame, kind)]) == FrameKind::Ping;
        const bool small = fits_slot(message->bytes);
        const bool by_slot = small && !ping && to.slots_out.begun() && !to.slots_out.full();
        posted = by_slot ? post_to_slot(message) : post_ordinary(message);
    }
    if (posted == ofi::Posted::Again) {
        // The provider may have moved what comes in, which a thread that sleeps is not told of.
        if (asleep_.load(std::memory_order_seq_cst)) endpoint_->wake();
        return false;
    }
    counts_.messages.fetch_add(1, std::memory_order_relaxed);
    if (posted == ofi::Posted::Failed) {
        // Told by the thread that drives: the caller may hold locks that the telling needs.
        to.dead.store(true, std::memory_order_seq_cst);
        give_back(message);
        if (asleep_.load(std::memory_order_seq_cst)) endpoint_->wake();
    }
    return true;
}

void Network::offer_slots(Connection& to) {
    if (!endpoint_->prefers_deposits() || senders_.size() >= kMostOffers) return;
    auto made = std::make_unique<SlotsIn>(*endpoint_);
    if (!made->open()) return;
    Message* message = claim();
    const SlotOffer offer = made->offer();
    std::memcpy(message->body(), &offer, sizeof offer);
    message->bytes = sizeof offer;
    address(message, to, FrameKind::Slots, 0, 0, 0);
    to.slots_in.store(made.get(), std::memory_order_release);
    senders_.push_back({&to, std::move(made)});
    send(message);
}

// In a message of its own: what is before it and what is behind it counts differently.
void Network::slots_offered(Connection& by, const std::byte* body, std::size_t bytes) {
    SlotOffer offer;
    if (bytes != sizeof offer || by.slots_offered) return;
    by.slots_offered = true;
    std::memcpy(&offer, body, sizeof offer);
    by.slots_out.offered(offer);
    Message* message = claim();
    address(message, by, FrameKind::Begin, 0, 0, 0);
    const std::lock_guard order(by.sending);
    if (Message* held = take_held(by); held != nullptr) send_in_order(held);
    send_in_order(message);
}

int Network::take_slots(Connection& from, SlotsIn& slots, bool announced) {
    int taken = 0;
    SlotHead head;
    alignas(8) std::byte body[kSlotBody];
    for (; taken < static_cast<int>(kSlots) && slots.take(head, body, announced, idle_polls_); ++taken) {
        const std::size_t bytes = std::size_t{head.words} * kAlign;
        from.slots_out.emptied(head.emptied);
        if (head.kind == kWholeFrames && bytes <= kSlotBody) {
            frames(body, bytes);
            continue;
        }
        Frame frame;
        frame.kind = static_cast<FrameKind>(head.kind);
        frame.origin = head.origin;
        frame.window = head.window;
        frame.number = head.number;
        frame.sender = from.token;
        frame.bytes = static_cast<std::uint32_t>(bytes);
        if (frame.kind > FrameKind::Emptied || bytes > kSlotBody)
            counts_.strangers.fetch_add(1, std::memory_order_relaxed);
        else
            handle(from, frame, body);
    }
    if (slots.to_be_told()) control(from, FrameKind::Emptied, slots.tell());
    return taken;
}

int Network::take_slots() {
    int taken = 0;
    for (std::size_t i = 0; i < senders_.size(); ++i)  // it may grow
        if (senders_[i].slots->landed()) taken += take_slots(*senders_[i].connection, *senders_[i].slots, false);
    return taken;
}

bool Network::landed() const {
    for (const FilledBy& sender : senders_)
        if (sender.slots->due()) return true;
    return false;
}

}  // namespace osc::net
