// The streams of a window, and its barrier of nodes.
#include "transport/net/far.h"

#include <cstring>
#include <utility>

#include "sync/dissemination.h"

namespace osc::net {
namespace {

constexpr std::uint32_t kWithdrawn = 64;  // holders of a region that are asked at once

}  // namespace

Far::Far(Network& network, const Job& job, std::uint64_t window, std::uint32_t me, Protocol protocol,
         std::atomic<std::uint32_t>& unsettled)
    : network_(network), job_(job), window_(window), me_(me), protocol_(protocol), unsettled_(unsettled) {}

Far::~Far() {
    for (auto& [rank, stream] : streams_) {
        {
            const std::lock_guard lock(stream->mutex());
            stream->settle();
        }
        if (stream->abandon()) static_cast<void>(stream.release());  // the provider may still write into it
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
        entry = std::make_unique<Stream>(network_, *to, window_, me_, target, protocol_, unsettled_, fence_);
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

Fault Far::await_lock(std::uint32_t target) {
    Stream* to = stream(target);
    if (to == nullptr) return Fault::Other;
    const std::lock_guard lock(to->mutex());
    to->confirm_lock();
    return Fault::None;
}

Fault Far::unlock(std::uint32_t target) {
    Stream* to = stream(target);
    return to != nullptr ? to->unlock() : Fault::Other;
}

Fault Far::post(std::uint32_t origin) {
    Stream* to = stream(origin);
    const Record post{What::Post, Basic::None, Op::None, 0, 0, 0};
    return to != nullptr ? to->notice({&post, 1}) : Fault::Other;
}

Fault Far::complete(std::uint32_t target) {
    Stream* to = stream(target);
    return to != nullptr ? to->close(What::Complete, false) : Fault::Other;
}

Fault Far::close(std::uint32_t target, bool held) {
    Stream* to = stream(target);
    return to != nullptr ? to->close(What::FenceClose, held) : Fault::Other;
}

void Far::opened(std::uint64_t fence, bool ahead) {
    if (ahead) fence_.store(fence, std::memory_order_relaxed);
    if (arrivals_->open(fence)) network_.poll();
}

bool Far::await_closes(std::uint64_t closes, sync::Liveness& liveness) {
    return network_.wait([&] { return arrivals_->closes() >= closes; }, [&] { return first_dead(liveness) != me_; });
}

void Far::forget_results() {
    network_.while_still([&] {
        const std::lock_guard lock(mutex_);
        for (auto& [rank, stream] : streams_)
            stream->forget_results();
    });
}

sync::Traffic Far::take_traffic() {
    const std::lock_guard lock(mutex_);
    sync::Traffic all;
    for (auto& [rank, stream] : streams_)
        all.add(stream->take_traffic());
    return all;
}

// A member of the window that has died; this process if there is none.
std::uint32_t Far::first_dead(sync::Liveness& liveness) const {
    for (std::uint32_t rank = 0; rank < job_.cards.size(); ++rank)
        if (rank != me_ && !liveness.alive(rank)) return rank;
    return me_;
}

// Who is a barrier ahead is kept apart by the barrier's number.
Fault Far::barrier(sync::Liveness& liveness, sync::News& news) {
    const std::uint64_t barrier = ++barriers_;
    const sync::Dissemination meeting{job_.node, static_cast<std::uint32_t>(job_.leaders.size())};
    std::uint32_t round = 0;
    for (std::uint32_t distance = 1; distance < meeting.nodes; distance *= 2, ++round) {
        const std::uint32_t next = job_.leaders[meeting.next(distance)];
        const std::uint32_t before = job_.leaders[meeting.before(distance)];
        Stream* to = stream(next);
        if (to == nullptr) return Fault::Other;
        std::vector<Record> steps;
        meeting.take(
            news.closes, distance, [&](std::uint32_t process) { return job_.node_of[process]; },
            [&](std::uint32_t process, std::uint32_t closes) {
                steps.push_back({What::FenceCount, Basic::None, Op::None, 0, closes, process});
            });
        const auto flags = static_cast<std::uint8_t>(news.wants);
        steps.push_back({What::Barrier, Basic::None, Op::None, flags, round, static_cast<std::int64_t>(barrier)});
        if (const Fault fault = to->notice(steps); fault != Fault::None) return fault;
        network_.send_held();  // what was for others
        std::uint32_t dead = before;
        const bool came = network_.wait([&] { return arrivals_->take(barrier, round, news); },
                                        [&] { return (dead = first_dead(liveness)) != me_; });
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
            stream.send_off();
            return Fault::None;
        });
    return each(target, [](Stream& stream) { return stream.settle(); });
}

Fault Far::settle_local(std::uint32_t target) {
    return each(target, [](Stream& stream) { return stream.settle_local(); });
}

void Far::withdraw(const Lease& lease, const std::vector<std::uint32_t>& holders) {
    // Nobody waits for anything but accesses that end by themselves before he answers; for the dead the network does.
    struct Tally final : Sender {
        std::atomic<std::uint32_t> due{0};
        void answered(Status, const std::byte*, std::size_t) override { due.fetch_sub(1, std::memory_order_seq_cst); }
    } answers;
    const auto await = [&](std::uint32_t most) {
        network_.wait([&] { return answers.due.load(std::memory_order_seq_cst) <= most; },
                      [&] {
                          for (const std::uint32_t holder : holders)
                              static_cast<void>(alive(holder));
                          return false;
                      });
    };
    const Record record{
        What::Withdraw, Basic::None, Op::None, 0, lease.number, static_cast<std::int64_t>(lease.address)};
    for (const std::uint32_t holder : holders) {
        Connection* to = network_.connect(job_.cards[holder]);
        if (to == nullptr || to->dead.load(std::memory_order_acquire)) continue;
        await(kWithdrawn - 1);
        Message* message = network_.claim();
        std::memcpy(message->body(), &record, sizeof record);
        message->bytes = sizeof record;
        answers.due.fetch_add(1, std::memory_order_relaxed);
        network_.request(*to, FrameKind::Query, window_, me_, message, answers);
    }
    await(0);
}

// By the network's handler. A stream never goes before its window's service has ended.
bool Far::drop(std::uint32_t owner, std::uint64_t address, std::uint32_t number) {
    Stream* held = nullptr;
    {
        const std::lock_guard lock(mutex_);
        const auto found = streams_.find(owner);
        if (found != streams_.end()) held = found->second.get();
    }
    return held == nullptr || held->regions().drop(address, number);
}

bool Far::alive(std::uint32_t rank) {
    Connection* peer = network_.connect(job_.cards[rank]);
    return peer != nullptr && network_.alive(*peer);
}

}  // namespace osc::net
