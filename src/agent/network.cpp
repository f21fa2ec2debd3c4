// Driving the network.
#include "agent/network.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>

#include "transport/shm/arena.h"

namespace osc::net {
namespace {

constexpr std::int64_t kSpinNs = 20000;        // after work, before the thread sleeps: one message brings the next
constexpr std::int64_t kLongSpinNs = 500000;   // the same while peers write and read directly, unseen
constexpr std::int64_t kNapNs = 100000;        // of the thread, while application threads drive
constexpr std::int64_t kAskEvery = 200000000;  // for a sign of life
constexpr std::size_t kStack = std::size_t{512} << 10;

// True in a thread that handles what has arrived: it holds drive_ already.
thread_local bool t_driving = false;

std::int64_t now_ns() {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

// Short turns, so that the system lets this thread in at once when something has come, even where the application's
// thread spins on the only core. What a kernel does not know of this it refuses, and then there is nothing lost.
void take_short_turns() {
    struct {
        std::uint32_t size, policy;
        std::uint64_t flags;
        std::int32_t nice;
        std::uint32_t priority;
        std::uint64_t runtime, deadline, period;
    } attributes{};
    attributes.size = sizeof attributes;
    attributes.runtime = 100000;
    ::syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace

Network& Network::mine() {
    static auto* network = new Network;  // never destroyed: its thread may run until the process's last instruction
    return *network;
}

Network::~Network() {
    close();
    for (Message* message : free_)
        delete message;
}

bool Network::open(const ofi::Wishes& wishes, int timeout_ms, std::string& why) {
    static std::mutex opening;
    const std::lock_guard lock(opening);
    if (endpoint_ != nullptr) {
        if (process_ == ::getpid()) return true;
        why = "a child made by fork cannot use its parent's network";
        return false;
    }
    timeout_ns_ = std::int64_t{timeout_ms} * 1000000;
    std::unique_ptr<ofi::Endpoint> opened(ofi::open(wishes, why));
    if (opened == nullptr) return false;
    card_ = {shm::random64(), shm::random64(), opened->address(), {}};
    if (const std::uint32_t address = opened->ipv4(); address != 0) card_.lifeline = lifeline_.open(address);
    endpoint_ = std::move(opened);
    stopping_.store(false, std::memory_order_relaxed);
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setstacksize(&attributes, kStack);
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are the application's
    const int error = ::pthread_create(&thread_, &attributes, &thread_main, this);
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    ::pthread_attr_destroy(&attributes);
    if (error != 0) {
        why = std::string("cannot start a thread: ") + std::strerror(error);
        endpoint_.reset();
        return false;
    }
    process_ = ::getpid();
    if (this == &mine()) {
        shm::set_wait_network([] { mine().poll(); });
        // Before libfabric's own end, which the thread must not meet. Until then others may need its answers.
        std::atexit([] { mine().stop(); });
    }
    return true;
}

void Network::close() {
    stop();
    endpoint_.reset();
}

void Network::stop() {
    if (endpoint_ == nullptr || process_ != ::getpid() || stopping_.load(std::memory_order_relaxed)) return;
    stopping_.store(true, std::memory_order_seq_cst);
    endpoint_->wake();
    ::pthread_join(thread_, nullptr);
    if (this == &mine()) shm::set_wait_network(nullptr);
}

Connection* Network::connect(const Card& card) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Connection>& entry = connections_[card.token];
    if (entry != nullptr) return entry.get();
    auto made = std::make_unique<Connection>();
    made->token = card.token;
    made->secret = card.secret;
    made->lifeline = card.lifeline;
    if (!endpoint_->insert(card.address, made->peer)) {
        connections_.erase(card.token);
        return nullptr;
    }
    entry = std::move(made);
    return entry.get();
}

Connection* Network::find(std::uint64_t token) {
    const std::lock_guard lock(mutex_);
    const auto found = connections_.find(token);
    return found != connections_.end() ? found->second.get() : nullptr;
}

// drive_, which the thread gives up for it even if it sleeps.
std::unique_lock<std::mutex> Network::seize() {
    waiters_.fetch_add(1, std::memory_order_seq_cst);
    if (asleep_.load(std::memory_order_seq_cst)) endpoint_->wake();
    std::unique_lock lock(drive_);
    waiters_.fetch_sub(1, std::memory_order_seq_cst);
    return lock;
}

std::shared_ptr<Arrivals> Network::serve(const Serving& window) {
    const auto lock = seize();
    return hosted_.add(window);
}

void Network::end_service(std::uint64_t window) {
    const auto lock = seize();
    hosted_.remove(window);
}

Message* Network::claim() {
    {
        const std::lock_guard lock(mutex_);
        if (!free_.empty()) {
            Message* message = free_.back();
            free_.pop_back();
            message->bytes = 0;
            return message;
        }
    }
    auto* made = new Message;
    made->operation.ended = &Network::sent;
    made->network = this;
    return made;
}

void Network::give_back(Message* message) {
    const std::lock_guard lock(mutex_);
    free_.push_back(message);
}

std::uint32_t Network::request(Connection& to, FrameKind kind, std::uint64_t window, std::uint32_t origin,
                               Message* message, Sender& sender) {
    std::uint32_t number = 0;
    {
        const std::lock_guard lock(mutex_);
        if (free_numbers_.empty()) {
            number = static_cast<std::uint32_t>(pending_.size());
            pending_.push_back({&to, &sender});
        } else {
            number = free_numbers_.back();
            free_numbers_.pop_back();
            pending_[number] = {&to, &sender};
        }
    }
    address(message, to, kind, window, origin, number);
    counts_.requests.fetch_add(1, std::memory_order_relaxed);
    send(message);
    return number;
}

void Network::notice(Connection& to, std::uint64_t window, std::uint32_t origin, Message* message) {
    address(message, to, FrameKind::Notice, window, origin, 0);
    send(message);
}

void Network::address(Message* message, Connection& to, FrameKind kind, std::uint64_t window, std::uint32_t origin,
                      std::uint32_t number) const {
    Frame frame;
    frame.kind = kind;
    frame.origin = origin;
    frame.secret = to.secret;
    frame.sender = card_.token;
    frame.window = window;
    frame.number = number;
    frame.bytes = static_cast<std::uint32_t>(message->bytes);
    std::memcpy(message->data, &frame, sizeof frame);
    message->connection = &to;
    message->number = number;
}

// In order: behind what the provider had no room for.
void Network::send(Message* message) {
    {
        const std::lock_guard lock(mutex_);
        if (!unsent_.empty()) {
            unsent_.push_back(message);
            unsent_count_.store(unsent_.size(), std::memory_order_relaxed);
            return;
        }
    }
    if (post(message)) return;
    const std::lock_guard lock(mutex_);
    unsent_.push_back(message);
    unsent_count_.store(unsent_.size(), std::memory_order_relaxed);
}

// False: to be tried again.
bool Network::post(Message* message) {
    Connection& to = *message->connection;
    const std::size_t bytes = sizeof(Frame) + message->bytes;
    ofi::Posted posted = ofi::Posted::Failed;
    bool copied = false;
    if (!to.dead.load(std::memory_order_relaxed)) {
        // What became of a copied message is not told: a ping is to fail if the peer is gone.
        copied = bytes <= endpoint_->largest_copied() && message->bytes > 0;
        posted = copied ? endpoint_->send_copied(to.peer, message->data, bytes)
                        : endpoint_->send(to.peer, message->data, bytes, message->operation);
    }
    if (posted == ofi::Posted::Again) return false;
    if (posted == ofi::Posted::Failed) {
        // Told by the thread that drives: the caller may hold locks that the telling needs.
        to.dead.store(true, std::memory_order_seq_cst);
        give_back(message);
        if (asleep_.load(std::memory_order_seq_cst)) endpoint_->wake();
    } else if (copied) {
        give_back(message);
    }
    return true;
}

void Network::sent(ofi::Operation& operation, int error) {
    auto& message = reinterpret_cast<Message&>(operation);
    Network& network = *message.network;
    Connection& to = *message.connection;
    network.give_back(&message);
    if (error != 0) network.lost(to);
}

template <class Post>
void Network::transfer(Transfer& transfer, Post&& post) {
    transfer.network = this;
    transfer.operation.ended = &Network::transferred;
    for (;;) {
        const ofi::Posted posted =
            transfer.connection->dead.load(std::memory_order_relaxed) ? ofi::Posted::Failed : post();
        if (posted == ofi::Posted::Yes) return;
        if (posted == ofi::Posted::Failed) return transfer.ended(transfer, EIO);
        if (!try_drive()) ::sched_yield();
    }
}

void Network::write(Transfer& it, const void* from, std::size_t bytes, std::uint64_t address, std::uint64_t key) {
    counts_.writes.fetch_add(1, std::memory_order_relaxed);
    transfer(it, [&] { return endpoint_->write(it.connection->peer, from, bytes, address, key, it.operation); });
}

void Network::read(Transfer& it, void* to, std::size_t bytes, std::uint64_t address, std::uint64_t key) {
    counts_.reads.fetch_add(1, std::memory_order_relaxed);
    transfer(it, [&] { return endpoint_->read(it.connection->peer, to, bytes, address, key, it.operation); });
}

void Network::transferred(ofi::Operation& operation, int error) {
    auto& transfer = reinterpret_cast<Transfer&>(operation);
    Network& network = *transfer.network;
    Connection& to = *transfer.connection;
    transfer.ended(transfer, error);
    if (error != 0) network.lost(to);
    network.bell_.ring();
}

// A process is gone: nobody waits for its replies any more, and what it held here is broken. Under drive_.
void Network::lost(Connection& peer) {
    peer.dead.store(true, std::memory_order_seq_cst);
    std::vector<std::pair<std::uint32_t, Sender*>> orphans;
    {
        const std::lock_guard lock(mutex_);
        for (std::uint32_t number = 0; number < pending_.size(); ++number) {
            if (pending_[number].connection != &peer) continue;
            orphans.emplace_back(number, pending_[number].sender);
            pending_[number] = {};
            free_numbers_.push_back(number);
        }
    }
    for (const auto& [number, sender] : orphans)
        sender->answered(number, Status::PeerDied, nullptr, 0);
    hosted_.died(peer.token);
    bell_.ring();
}

void Network::received(std::byte* message, std::size_t bytes) {
    Frame frame;
    Connection* from = check(message, bytes, card_.secret, frame) ? find(frame.sender) : nullptr;
    if (from == nullptr) {
        counts_.strangers.fetch_add(1, std::memory_order_relaxed);
        return;
    }
    from->heard.store(now_ns(), std::memory_order_relaxed);
    from->asked.store(0, std::memory_order_relaxed);
    const std::byte* body = message + sizeof(Frame);
    switch (frame.kind) {
        case FrameKind::Request:
        case FrameKind::Query:
        case FrameKind::Notice:
            hosted_.request(frame, body);
            return bell_.ring();
        case FrameKind::Reply:
            return reply_came(*from, frame, body);
        case FrameKind::Ping:
            return control(*from, FrameKind::Pong);
        case FrameKind::Pong:
            return;
    }
}

void Network::reply_came(Connection& from, const Frame& frame, const std::byte* body) {
    Sender* sender = nullptr;
    if (frame.bytes >= sizeof(ReplyHead)) {
        const std::lock_guard lock(mutex_);
        if (frame.number < pending_.size() && pending_[frame.number].connection == &from) {
            sender = pending_[frame.number].sender;
            pending_[frame.number] = {};
            free_numbers_.push_back(frame.number);
        }
    }
    if (sender == nullptr) {
        counts_.strangers.fetch_add(1, std::memory_order_relaxed);
        return;
    }
    ReplyHead head;
    std::memcpy(&head, body, sizeof head);
    sender->answered(frame.number, head.status, body + sizeof head, frame.bytes - sizeof head);
    bell_.ring();
}

void Network::answer(std::uint64_t token, std::uint32_t number, Status status, const std::byte* data,
                     std::size_t bytes) {
    Connection* to = find(token);
    if (to == nullptr) return;
    Message* message = claim();
    message->bytes = sizeof(ReplyHead) + bytes;
    address(message, *to, FrameKind::Reply, 0, 0, number);
    ReplyHead head;
    head.status = status;
    std::memcpy(message->body(), &head, sizeof head);
    if (bytes > 0) std::memcpy(message->body() + sizeof head, data, bytes);
    send(message);
}

void Network::control(Connection& to, FrameKind kind) {
    Message* message = claim();
    address(message, to, kind, 0, 0, 0);
    send(message);
}

bool Network::alive(Connection& peer) {
    if (peer.dead.load(std::memory_order_seq_cst)) return false;
    const std::int64_t now = now_ns();
    std::int64_t asked = peer.asked.load(std::memory_order_relaxed);
    if (asked != 0) {
        if (now - asked < timeout_ns_) {
            const std::unique_lock lock(peer.probing, std::try_to_lock);
            if (!lock.owns_lock() || !peer.probe.gone(peer.lifeline)) return true;
        }
        peer.dead.store(true, std::memory_order_seq_cst);  // tick() tells those who wait for it
        return false;
    }
    if (now - peer.heard.load(std::memory_order_relaxed) < kAskEvery) return true;
    if (peer.asked.compare_exchange_strong(asked, now, std::memory_order_relaxed)) control(peer, FrameKind::Ping);
    return true;
}

// What nobody's message brings about: what was not sent yet, locks that were granted, holders that may have died.
void Network::tick() {
    while (unsent_count_.load(std::memory_order_relaxed) > 0) {
        Message* first = nullptr;
        {
            const std::lock_guard lock(mutex_);
            if (!unsent_.empty()) first = unsent_.front();
        }
        if (first == nullptr || !post(first)) break;
        const std::lock_guard lock(mutex_);
        unsent_.pop_front();
        unsent_count_.store(unsent_.size(), std::memory_order_relaxed);
    }
    lock_waits_ = hosted_.resume();
    const std::int64_t now = now_ns();
    if (now - looked_ < kAskEvery) return;
    looked_ = now;
    lifeline_.drain();
    hosted_.look_for_dead();
    std::vector<std::uint64_t> holders;
    hosted_.holders(holders);
    std::vector<Connection*> gone;
    {
        const std::lock_guard lock(mutex_);
        for (const Pending& pending : pending_)
            if (pending.connection != nullptr && pending.connection->dead.load(std::memory_order_relaxed))
                gone.push_back(pending.connection);
    }
    for (const std::uint64_t token : holders)
        if (Connection* holder = find(token); holder != nullptr && !alive(*holder)) gone.push_back(holder);
    for (Connection* peer : gone)
        lost(*peer);
}

int Network::drive() {
    t_driving = true;
    const int events = endpoint_->poll(*this);
    tick();
    t_driving = false;
    return events;
}

// Drives once; true if something happened.
bool Network::try_drive() {
    if (t_driving) return false;
    polls_.fetch_add(1, std::memory_order_relaxed);
    if (!drive_.try_lock()) {
        if (asleep_.load(std::memory_order_seq_cst)) endpoint_->wake();
        return false;
    }
    const int events = drive();
    drive_.unlock();
    return events > 0;
}

void Network::poll() {
    if (endpoint_ != nullptr) try_drive();
}

// After a round without events: first only this, then lets others have the core, at last sleeps; the host is driven now
// and then (invariant I3).
void Network::rest(int round) {
    const shm::WaitPolicy policy = shm::wait_policy();
    if (policy.progress != nullptr && round % 16 == 0) policy.progress();
    if (round > policy.spin) ::sched_yield();
    if (round < kRounds) return;
    // Long waits are the thread's: it sleeps in the provider, this one until the thread rings.
    waiters_.fetch_sub(1, std::memory_order_relaxed);
    const std::uint32_t seen = bell_.word.load(std::memory_order_seq_cst);
    bell_.sleepers.fetch_add(1, std::memory_order_seq_cst);
    shm::futex_wait(bell_.word, seen, 2);
    bell_.sleepers.fetch_sub(1, std::memory_order_seq_cst);
    waiters_.fetch_add(1, std::memory_order_relaxed);
}

void* Network::thread_main(void* self) {
    static_cast<Network*>(self)->run();
    return nullptr;
}

void Network::run() {
    take_short_turns();
    std::int64_t last_event = now_ns();
    std::int64_t spin = kSpinNs;
    std::uint64_t polls = 0;
    while (!stopping_.load(std::memory_order_seq_cst)) {
        const std::uint64_t seen = polls_.load(std::memory_order_relaxed);
        if (waiters_.load(std::memory_order_relaxed) > 0 || seen != std::exchange(polls, seen)) {
            const timespec nap{0, kNapNs};
            ::nanosleep(&nap, nullptr);
            continue;
        }
        drive_.lock();
        const int events = drive();
        const std::int64_t now = now_ns();
        if (events > 0) {
            last_event = now;
        } else if (now - last_event > spin) {
            asleep_.store(true, std::memory_order_seq_cst);
            const bool soon = lock_waits_ || unsent_count_.load(std::memory_order_relaxed) > 0;
            counts_.sleeps.fetch_add(1, std::memory_order_relaxed);
            t_driving = true;
            // Whoever wants to drive, or to end this, has said so before it looked at asleep_.
            const bool wanted =
                stopping_.load(std::memory_order_seq_cst) || waiters_.load(std::memory_order_seq_cst) > 0;
            const bool woke = !wanted && endpoint_->sleep(soon ? 1 : 500, *this) > 0;
            t_driving = false;
            asleep_.store(false, std::memory_order_seq_cst);
            // Direct accesses are served while it polls, and reported to nobody: that it is woken at once tells of
            // them.
            const std::int64_t then = now_ns();
            spin = woke && then - now < kSpinNs ? std::min(2 * spin, kLongSpinNs) : kSpinNs;
            if (woke) last_event = then;
        } else {
            shm::cpu_relax();
        }
        drive_.unlock();
    }
}

}  // namespace osc::net
