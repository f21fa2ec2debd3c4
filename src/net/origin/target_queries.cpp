// Build: osc_core_cold
#include "net/origin/target_queries.h"

#include <cstring>

#include "net/origin/stream.h"

namespace osc::net {

TargetQueries::Turn::Turn(TargetQueries& queries) : queries_(queries) {
    while (queries_.taken_.exchange(true, std::memory_order_acquire)) {
        waited_ = true;
        const Stream::Released released(queries_.stream_);
        queries_.stream_.route.network.engine.wait([&] { return !queries_.taken_.load(std::memory_order_seq_cst); },
                                                   [] { return false; });
    }
}

TargetQueries::Turn::~Turn() {
    queries_.taken_.exchange(false, std::memory_order_seq_cst);
    queries_.stream_.route.network.engine.ring();
}

void TargetQueries::Reply::answered(Status reply, const std::byte* data, std::size_t size) {
    status = reply == Status::Done && size < bytes ? Status::Malformed : reply;
    if (status == Status::Done) std::memcpy(to, data, bytes);
    open.exchange(false, std::memory_order_seq_cst);
}

Fault TargetQueries::ask(const Record& record, void* to) {
    const StreamRoute& route = stream_.route;
    if (route.to.ended()) {
        stream_.faults.note(route.to.end.load(std::memory_order_relaxed));
        return stream_.faults.take();
    }
    Message* message = route.network.sender.claim(&record, sizeof record);
    reply_.to = to;
    reply_.bytes = returned(record);
    reply_.open.store(true, std::memory_order_relaxed);
    route.network.messenger.request(route.to, FrameKind::Query, route.window, route.me, message, reply_);
    const shm::WaitScope waits = route.scope();
    // Not given up: the messenger answers in place of a dead target.
    {
        const Stream::Released released(stream_);
        route.network.engine.wait([&] { return !reply_.open.load(std::memory_order_seq_cst); },
                                  [&] {
                                      route.network.messenger.alive(route.to);
                                      return false;
                                  });
    }
    return net::fault_of(reply_.status, route.target);
}

Fault TargetQueries::describe(Description& description) {
    if (!described_) {
        const Turn turn(*this);
        if (!described_)
            if (const Fault fault = ask({Opcode::Describe, Basic::None, Op::None, 0, 0, 0}, &description_);
                fault != Fault::None)
                return fault;
        described_ = true;
    }
    description = description_;
    return Fault::None;
}

Fault TargetQueries::count_counters(std::uint32_t& count) {
    std::uint64_t counters = 0;
    const Turn turn(*this);
    const Fault fault = ask({Opcode::Counters, Basic::None, Op::None, 0, 0, 0}, &counters);
    count = static_cast<std::uint32_t>(counters);
    return fault;
}

}  // namespace osc::net
