#include "net/channels/fabric_receiver.h"

#include "trace/recorder.h"

namespace osc::net {

void FabricReceiver::open(fabric::Endpoint& endpoint, std::uint64_t secret) {
    endpoint_ = &endpoint;
    secret_ = secret;
}

int FabricReceiver::poll() {
    return endpoint_->poll(*this);
}

// The sender of a frame; null if it is malformed, or not of this job.
Connection* FabricReceiver::sender_of(const std::byte* message, std::size_t bytes, Frame& frame) {
    return check(message, bytes, secret_, frame) ? connections_.find(frame.sender) : nullptr;
}

void FabricReceiver::received(std::byte* message, std::size_t bytes) {
    deliver_frames(message, bytes);
}

// Nothing behind a frame that is malformed or not of this job is delivered.
void FabricReceiver::deliver_frames(std::byte* message, std::size_t bytes) {
    do {
        Frame frame;
        Connection* from = sender_of(message, bytes, frame);
        if (from == nullptr) return count(counts_.strangers);
        deliver(*from, frame, message + sizeof frame);
        message += sizeof frame + frame.bytes;
        bytes -= sizeof frame + frame.bytes;
    } while (bytes > 0);
}

void FabricReceiver::deliver(Connection& from, const Frame& frame, const std::byte* body) {
    // The connection to a living peer has ended: its locks are broken, and messages may be missing before this one.
    const Status end = from.end.load(std::memory_order_relaxed);
    if (end != Status::Done && end != Status::PeerDied) return count(counts_.strangers);
    Connections::heard_from(from);
    FabricLane& lane = from.lane;
    const std::uint64_t flow = trace::is_open() ? trace::flow_of(from.token, sender_.token(), lane.received) : 0;
    ++lane.received;
    const trace::Span span(trace::pack(trace::Kind::Handle, static_cast<std::uint8_t>(frame.kind), frame.bytes), flow);
    handler_.received(from, frame, body);
}

}  // namespace osc::net
