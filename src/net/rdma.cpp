#include "net/rdma.h"

#include "base/clock.h"

namespace osc::net {

using progress::Policy;

void Rdma::open(fabric::Endpoint& endpoint, std::uint64_t token) {
    endpoint_ = &endpoint;
    token_ = token;
}

// False: the provider has no room, or the connection has failed and its end is not settled yet.
template <class Post>
bool Rdma::begin(Transfer& transfer, Post&& post) {
    transfer.rdma = this;
    transfer.operation.ended = &Rdma::ended;
    in_flight_.fetch_add(1, std::memory_order_relaxed);
    const std::int64_t began = now_ns();
    Connection& to = *transfer.connection;
    const bool open = !to.failed.load(std::memory_order_acquire);
    const fabric::Posted posted = open ? post() : fabric::Posted::Again;
    if (posted != fabric::Posted::Yes) {
        in_flight_.fetch_sub(1, std::memory_order_relaxed);
        if (posted == fabric::Posted::Failed) messenger_.failed(to);
        const bool registered = posted != fabric::Posted::NoMemory;
        const Status end = registered ? to.end.load(std::memory_order_acquire) : Status::NoMemory;
        if (end == Status::Done)
            count(counts_.retries);
        else
            transfer.ended(transfer, end);
        return end != Status::Done;
    }
    if (base::t_helper_thread) return true;  // it started a deferred access, and polls anyway
    // A thread that streams reaps the ends itself, several per poll, which costs less; the network thread leaves it the
    // core.
    if (begun_.fetch_add(1, std::memory_order_relaxed) % Policy::kTransfersPerPoll == 0)
        engine_.try_poll();
    else
        engine_.keep_thread_parked(began);
    return true;
}

// A provider that performs direct accesses or atomics in software does so in the target's polls, and reports no event
// there. If this looks like more than a single short access, the target is asked to poll, unless messages to it wait
// for room already.
void Rdma::announce(Connection& to, std::size_t bytes) {
    const std::int64_t now = now_ns();
    const std::int64_t before = to.accessed.exchange(now, std::memory_order_relaxed);
    if (bytes < Policy::kHintBytes && now - before > Policy::kHintInterval) return;
    if (now - to.announced.load(std::memory_order_relaxed) < Policy::kHintInterval) return;
    to.announced.store(now, std::memory_order_relaxed);
    if (!sender_.is_stuck(to)) sender_.control(to, FrameKind::ProgressHint);
}

template <class Post>
bool Rdma::access(Transfer& transfer, bool by_adapter, std::size_t bytes, std::atomic<std::uint64_t>& counter,
                  Post&& post) {
    if (!by_adapter && transfer.connection->token != token_) announce(*transfer.connection, bytes);
    const bool begun = begin(transfer, post);
    if (begun) count(counter);
    return begun;
}

bool Rdma::write(Transfer& it, const void* from, std::size_t bytes, std::uint64_t address, std::uint64_t key) {
    return access(it, !endpoint_->needs_target(), bytes, counts_.writes,
                  [&] { return endpoint_->write(it.connection->peer, from, bytes, address, key, it.operation); });
}

bool Rdma::read(Transfer& it, void* to, std::size_t bytes, std::uint64_t address, std::uint64_t key) {
    return access(it, !endpoint_->needs_target(), bytes, counts_.reads,
                  [&] { return endpoint_->read(it.connection->peer, to, bytes, address, key, it.operation); });
}

bool Rdma::update(Transfer& it, fabric::AtomicRow& row, std::uint64_t address, std::uint64_t key) {
    return access(it, endpoint_->has_hardware_atomics(), row.bytes, counts_.atomics,
                  [&] { return endpoint_->update(it.connection->peer, row, address, key, it.operation); });
}

void Rdma::update_when_room(Transfer& it, fabric::AtomicRow& row, std::uint64_t address, std::uint64_t key) {
    std::int64_t looked = 0;
    for (int round = 1; !update(it, row, address, key); ++round) {
        const bool moved = engine_.try_poll();
        // Some providers return EAGAIN forever for a dead peer. By time, because a round may yield the core for long.
        if (const std::int64_t now = now_ns(); now - looked >= Policy::kPeerCheck) {
            looked = now;
            messenger_.alive(*it.connection);
        }
        if (!moved) progress::ProgressEngine::pause(round, round);
    }
}

void Rdma::ended(fabric::Operation& operation, int error) {
    auto& transfer = reinterpret_cast<Transfer&>(operation);
    Rdma& rdma = *transfer.rdma;
    Status status = status_of(error);
    if (status == Status::Lost && transfer.connection->ended())
        status = transfer.connection->end.load(std::memory_order_relaxed);
    else if (status == Status::Lost) {
        rdma.failed_.push_back(&transfer);
        rdma.messenger_.failed(*transfer.connection);
        return;
    }
    rdma.in_flight_.fetch_sub(1, std::memory_order_relaxed);
    transfer.ended(transfer, status);
    rdma.engine_.ring();
}

void Rdma::settle() {
    if (failed_.empty()) return;
    std::vector<Transfer*> ended;
    std::erase_if(failed_, [&](Transfer* transfer) {
        const bool settled = transfer->connection->ended();
        if (settled) ended.push_back(transfer);
        return settled;
    });
    for (Transfer* transfer : ended) {
        in_flight_.fetch_sub(1, std::memory_order_relaxed);
        transfer->ended(*transfer, transfer->connection->end.load(std::memory_order_relaxed));
    }
    engine_.ring();
}

}  // namespace osc::net
