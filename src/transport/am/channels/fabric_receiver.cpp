#include "transport/am/channels/fabric_receiver.h"

#include <cstring>
#include <utility>

#include "trace/recorder.h"

namespace osc::am {

void FabricReceiver::open(fabric::Endpoint& endpoint, std::uint64_t secret) {
    endpoint_ = &endpoint;
    secret_ = secret;
}

void FabricReceiver::close() {
    for (const Inbox& inbox : inboxes_)
        inbox.from->lane.slots_in.store(nullptr, std::memory_order_relaxed);
    inboxes_.clear();
}

int FabricReceiver::poll() {
    int events = endpoint_->poll(*this);
    idle_polls_ += events == 0 ? 1 : 0;
    for (std::size_t i = 0; i < inboxes_.size(); ++i)  // may grow meanwhile
        if (inboxes_[i].slots->landed()) events += take_slots(*inboxes_[i].from, *inboxes_[i].slots, false);
    return events;
}

// The sender of a frame; null if it is malformed, or not of this job.
Connection* FabricReceiver::sender_of(const std::byte* message, std::size_t bytes, Frame& frame) {
    return check(message, bytes, secret_, frame) ? connections_.find(frame.sender) : nullptr;
}

void FabricReceiver::received(std::byte* message, std::size_t bytes) {
    Frame frame;
    Connection* from = sender_of(message, bytes, frame);
    EagerSlotsIn* slots = from != nullptr ? from->lane.slots_in.load(std::memory_order_relaxed) : nullptr;
    if (slots != nullptr) take_slots(*from, *slots, true);
    if (!deliver_frames(message, bytes)) return;
    if (slots != nullptr)
        slots->sent();
    else if (from->lane.ordinary < kOfferAfter && ++from->lane.ordinary == kOfferAfter)
        offer_slots(*from);
}

// False if a frame is malformed or not of this job; nothing behind it is delivered.
bool FabricReceiver::deliver_frames(std::byte* message, std::size_t bytes) {
    do {
        Frame frame;
        Connection* from = sender_of(message, bytes, frame);
        if (from == nullptr) {
            count(counts_.strangers);
            return false;
        }
        deliver(*from, frame, message + sizeof frame);
        message += sizeof frame + frame.bytes;
        bytes -= sizeof frame + frame.bytes;
    } while (bytes > 0);
    return true;
}

// Frames about slots stay here.
void FabricReceiver::deliver(Connection& from, const Frame& frame, const std::byte* body) {
    // The connection to a living peer has ended: its locks are broken, and messages may be missing before this one.
    const Status end = from.end.load(std::memory_order_relaxed);
    if (end != Status::Done && end != Status::PeerDied) return count(counts_.strangers);
    Connections::heard_from(from);
    FabricLane& lane = from.lane;
    const std::uint64_t flow = trace::is_open() ? trace::flow_of(from.token, sender_.token(), lane.received) : 0;
    ++lane.received;
    const trace::Span span(trace::pack(trace::Kind::Handle, static_cast<std::uint8_t>(frame.kind), frame.bytes), flow);
    if (frame.kind == FrameKind::Slots) {
        SlotOffer offer;
        if (frame.bytes != sizeof offer || std::exchange(lane.accepted, true)) return;
        std::memcpy(&offer, body, sizeof offer);
        sender_.use_slots(from, offer);
    } else if (frame.kind == FrameKind::Begin) {
        if (EagerSlotsIn* slots = lane.slots_in.load(std::memory_order_relaxed); slots != nullptr) slots->begin();
    } else if (frame.kind == FrameKind::Emptied) {
        lane.slots_out.emptied(static_cast<std::uint16_t>(frame.number));
    } else {
        handler_.received(from, frame, body);
    }
}

void FabricReceiver::offer_slots(Connection& to) {
    if (!endpoint_->prefers_deposits() || inboxes_.size() >= kMostOffers) return;
    auto made = std::make_unique<EagerSlotsIn>(*endpoint_);
    if (!made->open()) return;
    if (slot_body_ == nullptr) slot_body_ = std::make_unique_for_overwrite<std::byte[]>(kSlotBody);
    Message* message = sender_.claim();
    const SlotOffer offer = made->offer();
    std::memcpy(message->body(), &offer, sizeof offer);
    message->bytes = sizeof offer;
    Frame frame;
    frame.kind = FrameKind::Slots;
    to.lane.slots_in.store(made.get(), std::memory_order_release);
    inboxes_.push_back({&to, std::move(made)});
    sender_.send(to, frame, message);
}

int FabricReceiver::take_slots(Connection& from, EagerSlotsIn& slots, bool announced) {
    int taken = 0;
    SlotHead head;
    std::byte* const body = slot_body_.get();
    for (; taken < static_cast<int>(kSlots) && slots.take(head, body, announced, idle_polls_); ++taken) {
        const std::size_t bytes = std::size_t{head.words} * kAlign;
        from.lane.slots_out.emptied(head.emptied);
        if (head.kind == kWholeFrames && bytes <= kSlotBody) {
            deliver_frames(body, bytes);
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
            count(counts_.strangers);
        else
            deliver(from, frame, body);
    }
    if (slots.must_report()) sender_.control(from, FrameKind::Emptied, slots.report_emptied());
    return taken;
}

bool FabricReceiver::landed() const {
    for (const Inbox& inbox : inboxes_)
        if (inbox.slots->due()) return true;
    return false;
}

}  // namespace osc::am
