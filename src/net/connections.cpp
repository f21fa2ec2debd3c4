#include "net/connections.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "progress/policy.h"

namespace osc::net {

void Connections::open(fabric::Endpoint& endpoint, std::uint32_t ipv4, std::int64_t timeout_ns, ProcessAddress& mine) {
    endpoint_ = &endpoint;
    token_ = mine.token;
    timeout_ns_ = timeout_ns;
    mine.address = endpoint.address();
    if (ipv4 != 0) mine.lifeline = lifeline_.open(ipv4, timeout_ns);
}

Connection* Connections::connect(const ProcessAddress& address) {
    const std::lock_guard lock(mutex_);
    return connect_locked(address);
}

Connection* Connections::connect_locked(const ProcessAddress& address) {
    if (const auto found = connections_.find(address.token); found != connections_.end()) return found->second.get();
    auto made = std::make_unique<Connection>();
    made->token = address.token;
    made->secret = address.secret;
    made->lifeline = address.lifeline;
    if (!endpoint_->insert(address.address, made->peer)) return nullptr;
    return connections_.emplace(address.token, std::move(made)).first->second.get();
}

void Connections::admit(const ProcessTable& table) {
    const std::lock_guard lock(mutex_);
    tables_.push_back(&table);
}

void Connections::dismiss(const ProcessTable& table) {
    const std::lock_guard lock(mutex_);
    std::erase(tables_, &table);
}

Connection* Connections::find(std::uint64_t token) {
    const std::lock_guard lock(mutex_);
    if (const auto found = connections_.find(token); found != connections_.end()) return found->second.get();
    for (const ProcessTable* table : tables_)
        if (const std::uint32_t rank = table->find(token); rank != ProcessTable::kUnknown)
            return connect_locked(table->address(rank));
    return nullptr;
}

std::size_t Connections::count() {
    const std::lock_guard lock(mutex_);
    return connections_.size();
}

void Connections::heard_from(Connection& peer) {
    peer.heard.store(now_ns(), std::memory_order_relaxed);
    peer.asked.store(0, std::memory_order_relaxed);
}

Connections::Sign Connections::check(Connection& peer) {
    if (peer.ended()) return Sign::Ended;
    const bool failed = peer.failed.load(std::memory_order_acquire);
    const std::int64_t now = now_ns();
    std::int64_t asked = peer.asked.load(std::memory_order_relaxed);
    if (asked == 0 && !failed) {
        if (now - peer.heard.load(std::memory_order_relaxed) < progress::Policy::kPeerCheck) return Sign::Alive;
        if (!peer.asked.compare_exchange_strong(asked, now, std::memory_order_relaxed)) return Sign::Alive;
        doubt(peer);
        return Sign::Silent;
    }
    const std::unique_lock lock(peer.watching, std::try_to_lock);
    if (!lock.owns_lock()) return Sign::Alive;
    asked = peer.asked.load(std::memory_order_relaxed);
    if (asked == 0 && !failed) return Sign::Alive;  // heard from meanwhile: in_doubt() closes no later watch
    using Watched = progress::Watch::Sign;
    const bool ignores = ignores_lifelines_.load(std::memory_order_relaxed);
    switch (peer.watch.look(ignores ? progress::SocketAddress{} : peer.lifeline, token_, peer.token, timeout_ns_)) {
        case Watched::Unknown:
            return Sign::Alive;
        case Watched::Lives:
            if (!failed) return Sign::Alive;
            end(peer, Status::Lost);
            break;
        case Watched::Lost:
            // A member of a window that is freed there already may still send what this process awaits.
            if (!failed && now - asked < timeout_ns_) return Sign::Alive;
            end(peer, Status::Lost);
            break;
        case Watched::None:
            if (!failed && now - asked < timeout_ns_) return Sign::Alive;
            end(peer, failed ? Status::Lost : Status::PeerDied);
            break;
        case Watched::Gone:
            end(peer, Status::PeerDied);
            break;
    }
    return Sign::Ended;
}

void Connections::doubt(Connection& peer) {
    const std::lock_guard lock(mutex_);
    if (std::ranges::find(in_doubt_, &peer) == in_doubt_.end()) in_doubt_.push_back(&peer);
}

void Connections::fail(Connection& peer) {
    if (peer.failed.exchange(true, std::memory_order_seq_cst)) return;
    unsettled_.fetch_add(1, std::memory_order_seq_cst);
    doubt(peer);
}

void Connections::end(Connection& peer, Status why) {
    fail(peer);  // counted before another thread can settle it
    Status before = Status::Done;
    peer.end.compare_exchange_strong(before, why, std::memory_order_seq_cst);
}

std::vector<Connection*> Connections::in_doubt() {
    const std::lock_guard lock(mutex_);
    std::erase_if(in_doubt_, [&](Connection* peer) {
        const bool sure = peer->asked.load(std::memory_order_relaxed) == 0 && !peer->failed.load();
        const std::unique_lock watch(peer->watching, std::try_to_lock);
        if (!sure || !watch.owns_lock()) return false;
        peer->watch.end();
        return true;
    });
    return in_doubt_;
}

void Connections::settled(Connection& peer) {
    {
        const std::lock_guard watch(peer.watching);
        peer.watch.end();
    }
    const std::lock_guard lock(mutex_);
    if (std::erase(in_doubt_, &peer) > 0) unsettled_.fetch_sub(1, std::memory_order_relaxed);
}

// A peer that gets no answers to its messages must learn that, or it would await them for ever: its connection has
// ended here, the provider refuses its address, or no window of this process has it as a member any more.
void Connections::serve_lifeline() {
    lifeline_.serve([this](std::uint64_t observer) {
        const Connection* peer = find(observer);
        return peer != nullptr && !peer->ended() ? token_ : ~token_;
    });
}

}  // namespace osc::net
