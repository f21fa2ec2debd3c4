// The streams of a window, and its barrier of nodes.
#include "transport/net/far.h"

#include <utility>

namespace osc::net {

Far::Far(Network& network, const Job& job, std::uint64_t window, std::uint32_t me, Protocol protocol,
         std::atomic<std::uint32_t>& unsettled)
    : network_(network), job_(job), window_(window), me_(me), protocol_(protocol), unsettled_(unsettled) {}

Far::~Far() {
    for (auto& [rank, stream] : streams_) {
        stream->settle();
        if (stream->abandoned()) static_cast<void>(stream.release());  // the provider may still write into it
    }
}

Stream* Far::stream(std::uint32_t target) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Stream>& entry = streams_[target];
    if (entry == nullptr) {
        Connection* to = network_.connect(job_.cards[target]);
        if (to == nullptr) {
            diag::fail(Fault::Other, "libfabric refuses the address of rank %u", target);
            return nullptr;
        }
        entry = std::make_unique<Stream>(network_, *to, window_, me_, target, protocol_, unsettled_);
    }
    return entry.get();
}

Fault Far::lock(std::uint32_t target, sync::LockKind kind, bool passing) {
    Stream* to = stream(target);
    if (to == nullptr) return Fault::Other;
    return to->lock(kind == sync::LockKind::Exclusive ? LockAsk::Exclusive
                    : passing                         ? LockAsk::Passing
                                                      : LockAsk::Shared);
}

Fault Far::unlock(std::uint32_t target) {
    Stream* to = stream(target);
    return to != nullptr ? to->unlock() : Fault::Other;
}

Fault Far::post(std::uint32_t origin) {
    Stream* to = stream(origin);
    return to != nullptr ? to->notice({What::Post, Basic::None, Op::None, 0, 0, 0}) : Fault::Other;
}

Fault Far::complete(std::uint32_t target) {
    Stream* to = stream(target);
    return to != nullptr ? to->complete() : Fault::Other;
}

// Dissemination: in round k each node tells the one 2^k places further, and waits for the one 2^k places before. After
// the last round it has heard, directly or not, of all. Who is a barrier ahead is kept apart by the barrier's number.
Fault Far::barrier(sync::Liveness& liveness) {
    const std::uint64_t barrier = ++barriers_;
    const auto nodes = static_cast<std::uint32_t>(job_.leaders.size());
    std::uint32_t round = 0;
    for (std::uint32_t distance = 1; distance < nodes; distance *= 2, ++round) {
        const std::uint32_t next = job_.leaders[(job_.node + distance) % nodes];
        const std::uint32_t before = job_.leaders[(job_.node + nodes - distance) % nodes];
        Stream* to = stream(next);
        if (to == nullptr) return Fault::Other;
        const Record arrival{What::Barrier, Basic::None, Op::None, 0, round, static_cast<std::int64_t>(barrier)};
        if (const Fault fault = to->notice(arrival); fault != Fault::None) return fault;
        std::uint32_t dead = before;
        const bool came = network_.wait([&] { return arrivals_->take(barrier, round); },
                                        [&] {
                                            for (std::uint32_t rank = 0; rank < job_.cards.size(); ++rank)
                                                if (rank != me_ && !liveness.alive(rank)) {
                                                    dead = rank;
                                                    return true;
                                                }
                                            return false;
                                        });
        if (!came) return diag::fail(Fault::Dead, "rank %u died or does not answer", dead);
    }
    return Fault::None;
}

template <class F>
Fault Far::each(std::uint32_t target, F&& f) {
    std::vector<Stream*> streams;
    {
        const std::lock_guard lock(mutex_);
        for (auto& [rank, stream] : streams_)
            if (target == kAll || rank == target) streams.push_back(stream.get());
    }
    Fault first = Fault::None;
    std::string text;
    for (Stream* stream : streams) {
        const std::lock_guard lock(stream->mutex());
        const Fault fault = f(*stream);
        if (fault == Fault::None || first != Fault::None) continue;
        first = fault;
        text = diag::fault_text();
    }
    return first != Fault::None ? diag::fail(first, "%s", text.c_str()) : Fault::None;
}

Fault Far::settle(std::uint32_t target) {
    // All are sent before any is awaited.
    if (target == kAll)
        each(target, [](Stream& stream) {
            stream.push();
            return Fault::None;
        });
    return each(target, [](Stream& stream) { return stream.settle(); });
}

Fault Far::settle_local(std::uint32_t target) {
    return each(target, [](Stream& stream) { return stream.settle_local(); });
}

bool Far::alive(std::uint32_t rank) {
    Connection* peer = network_.connect(job_.cards[rank]);
    return peer != nullptr && network_.alive(*peer);
}

}  // namespace osc::net
