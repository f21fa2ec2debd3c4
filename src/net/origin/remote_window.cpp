// The streams of a window, and its barrier of nodes.
#include "net/origin/remote_window.h"

#include <algorithm>
#include <utility>

#include "sync/dissemination.h"

namespace osc::net {
namespace {

constexpr std::uint32_t kAsked = 64;  // queries of ask() in flight at once

// Operations on targets of this node await the target's fence before they come here.
constinit const std::atomic<std::uint64_t> g_no_fence{0};

}  // namespace

RemoteWindow::RemoteWindow(NetworkStack& network, Job& job, std::uint64_t window, std::uint32_t me, Protocol protocol,
                           std::atomic<std::uint32_t>& incomplete)
    : network_(network), job_(job), window_(window), me_(me), protocol_(protocol), incomplete_(incomplete) {}

RemoteWindow::~RemoteWindow() {
    for (auto& [rank, stream] : streams_) {
        {
            const std::lock_guard lock(stream->mutex);
            stream->complete_ops();
        }
        if (stream->abandon()) static_cast<void>(stream.release());  // the provider may still write into it
    }
}

Connection* RemoteWindow::connect(std::uint32_t rank) {
    Connection* to = network_.directory.connect(job_, rank, network_.engine);
    if (to == nullptr)
        base::fail(Fault::Other,
                   "rank %u cannot be reached: the processes that keep its address have died, or libfabric refuses it",
                   rank);
    return to;
}

Stream* RemoteWindow::stream(std::uint32_t target) {
    if (Stream* const used = used_stream(target); used != nullptr) return used;
    Connection* to = connect(target);
    if (to == nullptr) return nullptr;
    const std::lock_guard lock(mutex_);
    if (const auto found = streams_.find(target); found != streams_.end()) return found->second.get();
    const bool local = job_.node_of(target) == job_.node;
    auto made = std::make_unique<Stream>(StreamRoute{network_, *to, window_, me_, target}, protocol_, incomplete_,
                                         local ? g_no_fence : fence_);
    return streams_.emplace(target, std::move(made)).first->second.get();
}

Fault RemoteWindow::lock(std::uint32_t target, sync::LockKind kind, bool inside_lock_all) {
    Stream* to = stream(target);
    if (to == nullptr) return Fault::Other;
    const std::lock_guard lock(to->mutex);
    to->lock(kind == sync::LockKind::Exclusive ? LockAsk::Exclusive
             : inside_lock_all                 ? LockAsk::Barging
                                               : LockAsk::Shared);
    return Fault::None;
}

void RemoteWindow::await_lock(std::uint32_t target) {
    Stream* const to = used_stream(target);
    const std::lock_guard lock(to->mutex);
    to->confirm();
}

void RemoteWindow::unlock(std::uint32_t target) {
    Stream* const to = used_stream(target);
    const std::lock_guard lock(to->mutex);
    to->end_epoch(Opcode::Unlock);
}

Fault RemoteWindow::post(std::uint32_t origin) {
    const Record post{Opcode::Post, Basic::None, Op::None, 0, 0, 0};
    return notify(origin, {&post, 1});
}

// Sends steps that are not answered, past the operations of the stream.
Fault RemoteWindow::notify(std::uint32_t rank, std::span<const Record> steps) {
    Connection* to = base::insist([&] { return connect(rank); });
    if (to == nullptr) return Fault::Other;
    while (!steps.empty()) {
        const std::span<const Record> part =
            steps.first(std::min(steps.size(), network_.largest_body() / sizeof(Record)));
        Message* message = base::insist([&] { return network_.sender.claim(part.data(), part.size_bytes()); });
        network_.sender.send(*to, {.kind = FrameKind::Notice, .origin = me_, .window = window_}, message);
        steps = steps.subspan(part.size());
    }
    return net::fault_of(to->end.load(std::memory_order_relaxed), rank);
}

Fault RemoteWindow::send_complete(std::uint32_t target) {
    Stream* to = base::insist([&] { return stream(target); });
    network_.engine.expect_wait();
    if (to == nullptr) return Fault::Other;
    const std::lock_guard lock(to->mutex);
    to->close(Opcode::Complete, SendQueue::When::Now, arrivals_->is_tested_by(target));
    return Fault::None;
}

// A host's message that follows MPI_Win_complete may overtake the complete, which MPI_Win_test shows and MPI_Win_wait
// does not. A complete that this process sends before the target's query comes reaches the target before the answer: so
// this function looks first whether the complete is sent, and then whether the query has come.
bool RemoteWindow::awaits_complete(std::uint32_t target) {
    if (Stream* const to = used_stream(target); to != nullptr) {
        const std::lock_guard lock(to->mutex);
        if (to->sends_later()) return true;
    }
    return arrivals_->is_tested_by(target);
}

void RemoteWindow::announce_test(std::span<const std::uint32_t> origins) {
    std::vector<std::uint32_t> unaware;
    {
        const std::lock_guard lock(mutex_);
        for (const std::uint32_t origin : origins)
            if (base::insist([&] { return announced_.insert(origin).second; }))
                base::insist([&] { unaware.push_back(origin); });
    }
    if (!unaware.empty()) ask(unaware, {Opcode::Tested, Basic::None, Op::None, 0, 0, 0});
}

Fault RemoteWindow::close(std::uint32_t target, bool piggyback) {
    Stream* to = base::insist([&] { return stream(target); });
    network_.engine.expect_wait();
    if (to == nullptr) return Fault::Other;
    const std::lock_guard lock(to->mutex);
    to->close(Opcode::FenceClose, piggyback ? SendQueue::When::Piggyback : SendQueue::When::Now, false);
    return Fault::None;
}

void RemoteWindow::opened(std::uint64_t fence, bool ahead) {
    if (ahead) fence_.store(fence, std::memory_order_relaxed);
    if (arrivals_->open(fence)) network_.engine.poll();
}

bool RemoteWindow::await_closes(std::uint64_t closes, sync::Liveness& liveness) {
    return network_.engine.wait([&] { return arrivals_->closes() >= closes; },
                                [&] { return first_dead(liveness) != me_; });
}

void RemoteWindow::forget_results() {
    const auto still = network_.engine.seize();  // no reply is being handled
    const std::lock_guard lock(mutex_);
    for (auto& [rank, stream] : streams_)
        stream->forget_results();
}

sync::Traffic RemoteWindow::take_traffic() {
    const std::lock_guard lock(mutex_);
    sync::Traffic all;
    for (auto& [rank, stream] : streams_)
        all.add(stream->take_traffic());
    return all;
}

// A member of the window that has died; this process if there is none.
std::uint32_t RemoteWindow::first_dead(sync::Liveness& liveness) const {
    for (std::uint32_t rank = 0; rank < job_.size.processes; ++rank)
        if (rank != me_ && !liveness.alive(rank)) return rank;
    return me_;
}

// The barrier's number distinguishes the steps of a process that is one barrier ahead.
Fault RemoteWindow::barrier(sync::Liveness& liveness, sync::FenceSummary& news) {
    const std::uint64_t barrier = ++barriers_;
    network_.engine.expect_wait();
    const sync::Dissemination meeting{job_.node, static_cast<std::uint32_t>(job_.leaders.size())};
    std::uint32_t round = 0;
    for (std::uint32_t distance = 1; distance < meeting.nodes; distance *= 2, ++round) {
        const std::uint32_t next = job_.leaders[meeting.next(distance)];
        const std::uint32_t before = job_.leaders[meeting.before(distance)];
        std::vector<Record> steps;
        const auto add = [&](const Record& record) { base::insist([&] { steps.push_back(record); }); };
        meeting.take(
            news.closes, distance, [&](std::uint32_t process) { return job_.node_of(process); },
            [&](std::uint32_t process, std::uint32_t closes) {
                add({Opcode::FenceCount, Basic::None, Op::None, 0, closes, process});
            });
        const auto flags = static_cast<std::uint8_t>(news.wants);
        add({Opcode::Barrier, Basic::None, Op::None, flags, round, static_cast<std::int64_t>(barrier)});
        if (const Fault fault = notify(next, steps); fault != Fault::None) return fault;
        network_.sender.send_piggybacks();  // messages for other processes
        int dead = -1;
        const bool came = network_.engine.wait([&] { return arrivals_->take(barrier, round, news); },
                                               [&] { return (dead = liveness.dead_in_collective()) >= 0; });
        if (!came)
            return base::fail(Fault::Dead, "rank %d died, or its connection is lost",
                              dead >= 0 ? dead : static_cast<int>(before));
    }
    return Fault::None;
}

Stream* RemoteWindow::used_stream(std::uint32_t target) {
    const std::lock_guard lock(mutex_);
    const auto found = streams_.find(target);
    return found != streams_.end() ? found->second.get() : nullptr;
}

template <class F>
Fault RemoteWindow::each(F&& f) {
    const auto stream_from = [this](std::uint32_t rank) {
        const std::lock_guard lock(mutex_);
        const auto found = streams_.lower_bound(rank);
        return found != streams_.end() ? found->second.get() : nullptr;
    };
    base::FirstFault first;
    for (Stream* stream = stream_from(0); stream != nullptr; stream = stream_from(stream->route.target + 1)) {
        const std::lock_guard lock(stream->mutex);
        first.note(f(*stream));
    }
    return first.take();
}

Fault RemoteWindow::complete_ops(std::uint32_t target) {
    network_.engine.expect_wait();
    if (target != shm::kEveryTarget) {
        Stream* const to = used_stream(target);
        if (to == nullptr) return Fault::None;
        const std::lock_guard lock(to->mutex);
        return to->complete_ops();
    }
    // All are sent before any is awaited.
    each([](Stream& stream) {
        stream.send_off();
        return Fault::None;
    });
    return each([](Stream& stream) { return stream.complete_ops(); });
}

Fault RemoteWindow::complete_local(std::uint32_t target) {
    if (target == shm::kEveryTarget) return each([](Stream& stream) { return stream.complete_local(); });
    Stream* const to = used_stream(target);
    if (to == nullptr) return Fault::None;
    const std::lock_guard lock(to->mutex);
    return to->complete_local();
}

// Sends a query that returns nothing to each of these processes, and awaits the replies.
void RemoteWindow::ask(std::span<const std::uint32_t> ranks, const Record& record) {
    // A process's network thread answers, also while the application computes; the messenger answers for a dead one.
    struct Tally final : ReplyHandler {
        std::atomic<std::uint32_t> due{0};
        void answered(Status, const std::byte*, std::size_t) override { due.fetch_sub(1, std::memory_order_seq_cst); }
    } answers;
    const auto await = [&](std::uint32_t most) {
        network_.engine.wait([&] { return answers.due.load(std::memory_order_seq_cst) <= most; },
                             [&] {
                                 for (const std::uint32_t rank : ranks)
                                     static_cast<void>(alive(rank));
                                 return false;
                             });
    };
    for (const std::uint32_t rank : ranks) {
        Connection* to = base::insist([&] { return connect(rank); });
        if (to == nullptr || to->ended()) continue;
        await(kAsked - 1);
        Message* message = base::insist([&] { return network_.sender.claim(&record, sizeof record); });
        answers.due.fetch_add(1, std::memory_order_relaxed);
        network_.messenger.request(*to, FrameKind::Query, window_, me_, message, answers);
    }
    await(0);
}

// A holder answers when its accesses have ended, which needs nothing of this process.
void RemoteWindow::withdraw(const Lease& lease, const std::vector<std::uint32_t>& holders) {
    ask(holders, {Opcode::Withdraw, Basic::None, Op::None, 0, lease.number, static_cast<std::int64_t>(lease.address)});
}

// Called under the drive lock. A stream lasts until its window's service has ended.
bool RemoteWindow::drop(std::uint32_t owner, std::uint64_t address, std::uint32_t number) {
    Stream* const held = used_stream(owner);
    return held == nullptr || held->regions.drop(address, number);
}

bool RemoteWindow::alive(std::uint32_t rank) {
    return network_.directory.alive(job_, rank);
}

}  // namespace osc::net
