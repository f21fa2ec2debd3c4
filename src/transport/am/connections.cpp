#include "transport/am/connections.h"

#include <utility>

#include "base/clock.h"
#include "progress/policy.h"

namespace osc::am {

void Connections::open(fabric::Endpoint& endpoint, std::int64_t timeout_ns, ProcessAddress& mine) {
    endpoint_ = &endpoint;
    timeout_ns_ = timeout_ns;
    mine.address = endpoint.address();
    if (const std::uint32_t address = endpoint.ipv4(); address != 0) mine.lifeline = lifeline_.open(address);
}

Connection* Connections::connect(const ProcessAddress& address) {
    const std::lock_guard lock(mutex_);
    return connect_locked(address);
}

Connection* Connections::connect_locked(const ProcessAddress& address) {
    std::unique_ptr<Connection>& entry = connections_[address.token];
    if (entry != nullptr) return entry.get();
    auto made = std::make_unique<Connection>();
    made->token = address.token;
    made->secret = address.secret;
    made->lifeline = address.lifeline;
    if (!endpoint_->insert(address.address, made->peer)) {
        connections_.erase(address.token);
        return nullptr;
    }
    entry = std::move(made);
    return entry.get();
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
        if (const ProcessAddress* address = table->find(token); address != nullptr) return connect_locked(*address);
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

Connections::Sign Connections::check(Connection& peer) const {
    if (peer.dead.load(std::memory_order_seq_cst)) return Sign::Dead;
    const std::int64_t now = now_ns();
    std::int64_t asked = peer.asked.load(std::memory_order_relaxed);
    if (asked == 0) {
        if (now - peer.heard.load(std::memory_order_relaxed) < progress::Policy::kPeerCheck) return Sign::Alive;
        const bool first = peer.asked.compare_exchange_strong(asked, now, std::memory_order_relaxed);
        return first ? Sign::Silent : Sign::Alive;
    }
    if (now - asked < timeout_ns_) {
        const std::unique_lock lock(peer.probing, std::try_to_lock);
        if (!lock.owns_lock() || !peer.probe.gone(peer.lifeline)) return Sign::Alive;
    }
    peer.dead.store(true, std::memory_order_seq_cst);
    return Sign::Dead;
}

}  // namespace osc::am
