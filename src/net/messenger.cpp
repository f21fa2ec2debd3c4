// Build: osc_core
#include "net/messenger.h"

#include <cstring>
#include <vector>

#include "base/warn.h"
#include "trace/recorder.h"

namespace osc::net {

void Messenger::open(std::uint64_t secret, std::size_t largest_body) {
    secret_ = secret;
    service_.set_largest_body(largest_body);
}

std::shared_ptr<Arrivals> Messenger::serve(const ExposedWindow& window) {
    const auto lock = engine_.seize();
    return service_.add(window);
}

void Messenger::end_service(std::uint64_t window) {
    const auto lock = engine_.seize();
    service_.remove(window);
}

void Messenger::find_awaited(std::uint64_t window, const sync::WaitQuestion& wait, sync::Awaited& awaited) {
    const auto lock = engine_.seize();
    service_.find_awaited(window, wait, awaited);
}

void Messenger::request(Connection& to, FrameKind kind, std::uint64_t window, std::uint32_t origin, Message* message,
                        ReplyHandler& handler, FabricSender::When when) {
    const std::uint32_t number = requests_.add(to, handler);
    count(counts_.requests);
    sender_.send(to, {.kind = kind, .origin = origin, .window = window, .number = number}, message, when);
}

bool Messenger::alive(Connection& peer) {
    const Connections::Sign sign = connections_.check(peer);
    if (sign == Connections::Sign::Silent) sender_.control(peer, FrameKind::Ping);
    return sign != Connections::Sign::Ended;
}

// Nothing behind a frame that is malformed or not of this job is handled.
void Messenger::received(std::byte* message, std::size_t bytes) {
    do {
        Frame frame;
        if (!check(message, bytes, secret_, frame)) return count(counts_.strangers);
        Connection* const from = frame.kind == FrameKind::Hello
                                     ? connections_.meet(frame.sender, message + sizeof frame, frame.bytes)
                                     : connections_.sender(frame.sender);
        if (from == nullptr) return count(counts_.strangers);
        handle(*from, frame, message + sizeof frame);
        message += sizeof frame + frame.bytes;
        bytes -= sizeof frame + frame.bytes;
    } while (bytes > 0);
}

void Messenger::handle(Connection& from, const Frame& frame, const std::byte* body) {
    // The connection to a living peer has ended: its locks are broken, and messages may be missing before this one.
    const Status end = from.end.load(std::memory_order_relaxed);
    if (end != Status::Done && end != Status::PeerDied) return count(counts_.strangers);
    Connections::heard_from(from);
    const std::uint64_t number = from.lane.received++;
    const std::uint64_t flow = trace::is_open() ? trace::flow_of(from.token, sender_.token(), number) : 0;
    const trace::Span span(trace::pack(trace::Kind::Handle, static_cast<std::uint8_t>(frame.kind), frame.bytes), flow);
    switch (frame.kind) {
        case FrameKind::DelayedReply:
        case FrameKind::Request:
        case FrameKind::Query:
        case FrameKind::Notice: {
            Frame request = frame;
            if (frame.kind == FrameKind::DelayedReply) {
                request.kind = FrameKind::Request;
                reply_when_ = FabricSender::When::Piggyback;
            }
            if (frame.kind == FrameKind::Request || frame.kind == FrameKind::Query) engine_.serves();
            service_.request(request, body);
            reply_when_ = FabricSender::When::Now;
            return engine_.ring();
        }
        case FrameKind::Reply: {
            ReplyHandler* handler = frame.bytes >= sizeof(ReplyHead) ? requests_.take(from, frame.number) : nullptr;
            if (handler == nullptr) return count(counts_.strangers);
            ReplyHead head;
            std::memcpy(&head, body, sizeof head);
            handler->answered(head.status, body + sizeof head, frame.bytes - sizeof head);
            return engine_.ring();
        }
        case FrameKind::Ping:
            from.pings.fetch_add(1, std::memory_order_release);
            engine_.ring();
            return sender_.control(from, FrameKind::Pong, static_cast<std::uint32_t>(engine_.sleeps()));
        case FrameKind::ProgressHint:
            engine_.serves();
            return engine_.expect_direct();
        case FrameKind::Pong:
            from.sleeps.store(frame.number, std::memory_order_relaxed);
            from.pongs.fetch_add(1, std::memory_order_release);
            return engine_.ring();
        case FrameKind::Hello:
            return;
        case FrameKind::LookUp: {
            std::vector<std::byte> others;
            engine_.serves();
            const bool known = connections_.copy_others(frame.window, frame.origin, others);
            return answer(frame.sender, frame.number, known ? Status::Done : Status::UnknownWindow, others.data(),
                          others.size());
        }
    }
}

void Messenger::answer(std::uint64_t token, std::uint32_t number, Status status, const std::byte* data,
                       std::size_t bytes) {
    Connection* to = connections_.find(token);
    if (to == nullptr) return;
    Message* message = sender_.claim();
    message->bytes = sizeof(ReplyHead) + bytes;
    const ReplyHead head{.status = status};
    std::memcpy(message->body(), &head, sizeof head);
    if (bytes > 0) std::memcpy(message->body() + sizeof head, data, bytes);
    sender_.send(*to, {.kind = FrameKind::Reply, .number = number}, message, reply_when_);
}

void Messenger::failed(Connection& peer) {
    connections_.fail(peer);
    engine_.wake_thread();
}

void Messenger::no_memory(Connection& peer) {
    base::warn_for_group(
        "the provider cannot register the memory of messages: raise the limit of locked memory (ulimit -l)");
    connections_.end(peer, Status::NoMemory);
    engine_.wake_thread();
}

// Ends the requests to a peer that none reaches any more, and breaks its locks here.
void Messenger::report_end(Connection& peer) {
    for (ReplyHandler* handler : requests_.take_all(peer))
        handler->answered(peer.end.load(std::memory_order_relaxed), nullptr, 0);
    service_.died(peer.token);
    connections_.settled(peer);
    engine_.ring();
}

void Messenger::resume_waiting() {
    const bool waited = service_.waits();
    waits_ = waited && service_.resume();
    // This process may sleep until a request of a peer is done, and no message announces that it went on.
    if (waited) engine_.ring();
}

// Peers that hold locks others want, peers that take no messages, and ended ones whose requests have not: the thread
// that found the end could not take the locks for that.
void Messenger::look_for_dead() {
    service_.look_for_dead();
    std::vector<std::uint64_t> holders;
    service_.holders(holders);
    std::vector<Connection*> doubtful = sender_.stuck_peers();
    for (const std::uint64_t token : holders)
        if (Connection* holder = connections_.find(token); holder != nullptr) doubtful.push_back(holder);
    requests_.ended_peers(doubtful);
    look_at(doubtful);
    look_for_ends();
}

void Messenger::look_for_ends() {
    look_at(connections_.in_doubt());
}

void Messenger::look_at(const std::vector<Connection*>& peers) {
    for (Connection* peer : peers)
        if (!alive(*peer)) report_end(*peer);
}

}  // namespace osc::net
