#include "net/connections.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "net/directory.h"
#include "progress/policy.h"

namespace osc::net {

void Connections::open(fabric::Endpoint& endpoint, std::uint32_t ipv4, std::int64_t timeout_ns, ProcessAddress& mine) {
    endpoint_ = &endpoint;
    token_ = mine.token;
    timeout_ns_ = timeout_ns;
    mine.address = endpoint.address();
    if (ipv4 != 0) mine.lifeline = lifeline_.open(ipv4, timeout_ns);
}

Connection* Connections::connect(const ProcessAddress& address, bool lacks_address) {
    const std::lock_guard lock(mutex_);
    return connect_locked(address, lacks_address);
}

Connection* Connections::connect_locked(const ProcessAddress& address, bool lacks_address) {
    if (Connection* const found = find_locked(address.token, lacks_address); found != nullptr) return found;
    auto made = std::make_unique<Connection>();
    made->token = address.token;
    made->secret = address.secret;
    made->lifeline = address.lifeline;
    made->lacks_address.store(lacks_address, std::memory_order_relaxed);
    if (!endpoint_->insert(address.address, made->peer)) {
        refused_.insert(address.token);
        return nullptr;
    }
    return connections_.emplace(address.token, std::move(made)).first->second.get();
}

void Connections::admit(Job& job) {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(&job);
}

void Connections::dismiss(Job& job) {
    const std::lock_guard lock(mutex_);
    std::erase(jobs_, &job);
}

Connection* Connections::find(std::uint64_t token, bool lacks_address) {
    const std::lock_guard lock(mutex_);
    return find_locked(token, lacks_address);
}

// A peer that has sent nothing may not have this process's address: a message that went to it without may have come
// when its team had ended there.
Connection* Connections::find_locked(std::uint64_t token, bool lacks_address) {
    const auto found = connections_.find(token);
    if (found == connections_.end()) return nullptr;
    Connection& peer = *found->second;
    if (lacks_address && peer.heard.load(std::memory_order_relaxed) == 0)
        peer.lacks_address.store(true, std::memory_order_relaxed);
    return &peer;
}

Connection* Connections::sender(std::uint64_t token) {
    const std::lock_guard lock(mutex_);
    if (Connection* const found = find_locked(token); found != nullptr) return found;
    for (const Job* job : jobs_)
        if (const std::uint32_t rank = job->find(token); rank != ProcessTable::kUnknown)
            if (const ProcessTable::Place place = job->place_of(rank); job->knows(place))
                return connect_locked(job->address(rank, place), false);
    return nullptr;
}

bool Connections::knows_locked(std::uint64_t token) const {
    return std::ranges::any_of(jobs_, [&](const Job* job) { return job->find(token) != ProcessTable::kUnknown; });
}

Connection* Connections::meet(std::uint64_t token, const std::byte* body, std::size_t bytes) {
    ProcessAddress address;
    if (bytes != sizeof address) return nullptr;
    std::copy_n(body, bytes, reinterpret_cast<std::byte*>(&address));
    const std::lock_guard lock(mutex_);
    return address.token == token && knows_locked(token) ? connect_locked(address, false) : nullptr;
}

bool Connections::copy_others(std::uint64_t team, std::uint32_t rank, std::vector<std::byte>& others) {
    const std::lock_guard lock(mutex_);
    for (const Job* job : jobs_) {
        if (job->number != team || rank >= job->size.processes || job->size.others_bytes == 0) continue;
        const std::uint32_t part = job->place_of(rank).part;
        if (job->look_up(part).load() != ProcessTable::kKnown) return false;
        const std::span<const std::byte> its = job->others_of(part);
        others.assign(its.begin(), its.end());
        return true;
    }
    return false;
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
        const std::lock_guard lock(mutex_);
        const Connection* const peer = find_locked(observer);
        const bool serves = peer != nullptr ? !peer->ended() : knows_locked(observer) && !refused_.contains(observer);
        return serves ? token_ : ~token_;
    });
}

}  // namespace osc::net
