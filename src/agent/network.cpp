// Opening the network, and sending.
#include "agent/network.h"

#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "agent/book.h"
#include "transport/shm/arena.h"

namespace osc::net {
namespace {

constexpr std::size_t kStirring = std::size_t{32} << 10;  // bytes of a direct access that is worth a message
constexpr std::int64_t kStirEvery = kStirNs / 2;
constexpr std::size_t kStack = std::size_t{512} << 10;  // of the thread

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
    std::unique_ptr<ofi::Endpoint> opened(ofi::open(wishes, why));
    if (opened == nullptr || !open(std::move(opened), timeout_ms, Progress::Thread, why)) return false;
    if (this == &mine()) {
        shm::set_wait_network([] { mine().poll(); });
        // Before libfabric's own end, which the thread must not meet. Until then others may need its answers.
        std::atexit([] { mine().stop(); });
    }
    return true;
}

bool Network::open(std::unique_ptr<ofi::Endpoint> endpoint, int timeout_ms, Progress progress, std::string& why) {
    timeout_ns_ = std::int64_t{timeout_ms} * 1000000;
    if (!nap_.open()) {
        why = std::string("cannot make a timer: ") + std::strerror(errno);
        return false;
    }
    card_ = {shm::random64(), shm::random64(), endpoint->address(), {}};
    if (const std::uint32_t address = endpoint->ipv4(); address != 0) card_.lifeline = lifeline_.open(address);
    endpoint_ = std::move(endpoint);
    stopping_.store(false, std::memory_order_relaxed);
    progress_ = progress;
    if (progress_ == Progress::Thread && !start_thread(why)) {
        endpoint_.reset();
        return false;
    }
    process_ = ::getpid();
    return true;
}

bool Network::start_thread(std::string& why) {
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
    if (error != 0) why = std::string("cannot start a thread: ") + std::strerror(error);
    return error == 0;
}

void Network::close() {
    stop();
    for (const FilledBy& sender : senders_)
        sender.connection->slots_in.store(nullptr, std::memory_order_relaxed);
    senders_.clear();
    endpoint_.reset();
}

void Network::stop() {
    if (endpoint_ == nullptr || process_ != ::getpid() || stopping_.load(std::memory_order_relaxed)) return;
    stopping_.store(true, std::memory_order_seq_cst);
    nap_.end();
    endpoint_->wake();
    if (progress_ == Progress::Thread) ::pthread_join(thread_, nullptr);
    if (this == &mine()) shm::set_wait_network(nullptr);
}

Connection* Network::connect(const Card& card) {
    const std::lock_guard lock(mutex_);
    return connect_locked(card);
}

Connection* Network::connect_locked(const Card& card) {
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

void Network::admit(const Book& book) {
    const std::lock_guard lock(mutex_);
    books_.push_back(&book);
}

void Network::dismiss(const Book& book) {
    const std::lock_guard lock(mutex_);
    std::erase(books_, &book);
}

// The process with this token, which a message bears. One that has not been heard of is looked up.
Connection* Network::find(std::uint64_t token) {
    const std::lock_guard lock(mutex_);
    if (const auto found = connections_.find(token); found != connections_.end()) return found->second.get();
    for (const Book* book : books_)
        if (const Card* card = book->find(token); card != nullptr) return connect_locked(*card);
    return nullptr;
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

void Network::request(Connection& to, FrameKind kind, std::uint64_t window, std::uint32_t origin, Message* message,
                      Sender& sender, bool held) {
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
    if (held)
        hold(message);
    else
        send(message);
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
}

// `message` with what is held for the same process before it, in one; what has no room there goes ahead. Under the
// process's `sending`.
Message* Network::with_held(Message* message) {
    Message* held = held_count_.load(std::memory_order_relaxed) > 0 ? take_held(*message->connection) : nullptr;
    if (held == nullptr) return message;
    const std::size_t more = sizeof(Frame) + message->bytes;
    if (held->bytes + more > kBody) {
        send_in_order(held);
        return message;
    }
    std::memcpy(held->body() + held->bytes, message->data, more);
    held->bytes += more;
    give_back(message);
    return held;
}

// A message that another one to the same process may take along: sending costs more than handling.
void Network::hold(Message* message) {
    Connection& to = *message->connection;
    const std::lock_guard order(to.sending);
    message = with_held(message);
    const std::lock_guard lock(mutex_);
    to.held = message;
    holding_.push_back(&to);
    held_count_.store(holding_.size(), std::memory_order_relaxed);
}

void Network::send_held() {
    if (held_count_.load(std::memory_order_relaxed) == 0) return;
    std::vector<Connection*> holding;
    {
        const std::lock_guard lock(mutex_);
        holding = holding_;
    }
    for (Connection* to : holding) {
        const std::lock_guard order(to->sending);
        if (Message* message = take_held(*to); message != nullptr) send_in_order(message);
    }
}

Message* Network::take_held(Connection& to) {
    const std::lock_guard lock(mutex_);
    Message* held = std::exchange(to.held, nullptr);
    if (held != nullptr) std::erase(holding_, &to);
    held_count_.store(holding_.size(), std::memory_order_relaxed);
    return held;
}

void Network::send(Message* message) {
    const std::lock_guard order(message->connection->sending);
    send_in_order(with_held(message));
}

// Behind what the provider had no room for.
void Network::send_in_order(Message* message) {
    Connection& to = *message->connection;
    const auto keep = [&] {
        if (to.unsent.empty()) stuck_.push_back(&to);
        to.unsent.push_back(message);
        stuck_count_.store(stuck_.size(), std::memory_order_relaxed);
    };
    {
        const std::lock_guard lock(mutex_);
        if (!to.unsent.empty()) return keep();
    }
    if (post(message)) return;
    {
        const std::lock_guard lock(mutex_);
        keep();
    }
    // The thread may have fallen asleep again, for long, before it could see this.
    if (asleep_.load(std::memory_order_seq_cst)) endpoint_->wake();
}

void Network::sent(ofi::Operation& operation, int error) {
    auto& message = reinterpret_cast<Message&>(operation);
    Network& network = *message.network;
    Connection& to = *message.connection;
    network.give_back(&message);
    if (error != 0) network.lost(to);
}

// False: the provider has no room.
template <class Post>
bool Network::transfer(Transfer& transfer, Post&& post) {
    transfer.network = this;
    transfer.operation.ended = &Network::transferred;
    moving_.fetch_add(1, std::memory_order_relaxed);
    const std::int64_t began = now_ns();
    const bool dead = transfer.connection->dead.load(std::memory_order_relaxed);
    const ofi::Posted posted = dead ? ofi::Posted::Failed : post();
    if (posted != ofi::Posted::Yes) moving_.fetch_sub(1, std::memory_order_relaxed);
    if (posted == ofi::Posted::Again) return false;
    if (posted == ofi::Posted::Failed) {
        transfer.ended(transfer, EIO);
        return true;
    }
    // A thread that streams takes note of what has ended itself, several at a time, which costs less; and the network's
    // thread leaves it the core.
    if (transfers_.fetch_add(1, std::memory_order_relaxed) % kTransfersPerDrive == 0)
        try_drive();
    else
        keep_thread_away(began);
    return true;
}

// A provider that does direct accesses in software does them when it is polled, and reports them to nobody: the target
// is told to poll, if this looks like more than a single short one.
void Network::stir(Connection& to, std::size_t bytes) {
    const std::int64_t now = now_ns();
    const std::int64_t before = to.direct.exchange(now, std::memory_order_relaxed);
    if (bytes < kStirring && now - before > kStirEvery) return;
    if (now - to.stirred.load(std::memory_order_relaxed) < kStirEvery) return;
    to.stirred.store(now, std::memory_order_relaxed);
    control(to, FrameKind::Stir);
}

bool Network::write(Transfer& it, const void* from, std::size_t bytes, std::uint64_t address, std::uint64_t key) {
    stir(*it.connection, bytes);
    counts_.writes.fetch_add(1, std::memory_order_relaxed);
    if (transfer(it, [&] { return endpoint_->write(it.connection->peer, from, bytes, address, key, it.operation); }))
        return true;
    counts_.writes.fetch_sub(1, std::memory_order_relaxed);
    return false;
}

bool Network::read(Transfer& it, void* to, std::size_t bytes, std::uint64_t address, std::uint64_t key) {
    stir(*it.connection, bytes);
    counts_.reads.fetch_add(1, std::memory_order_relaxed);
    if (transfer(it, [&] { return endpoint_->read(it.connection->peer, to, bytes, address, key, it.operation); }))
        return true;
    counts_.reads.fetch_sub(1, std::memory_order_relaxed);
    return false;
}

void Network::atomic(Transfer& it, ofi::Atomic& what, std::uint64_t address, std::uint64_t key) {
    counts_.atomics.fetch_add(1, std::memory_order_relaxed);
    Connection& to = *it.connection;
    if (to.token != card_.token) stir(to, sizeof what.operand);
    const auto post = [&] { return endpoint_->atomic(to.peer, what, address, key, it.operation); };
    for (int round = 1; !transfer(it, post); ++round) {
        const bool moved = try_drive();
        // Some providers have no room for what goes to the dead, for ever.
        if (round % 256 == 0) alive(to);
        if (!moved) rest(round, round);
    }
}

void Network::transferred(ofi::Operation& operation, int error) {
    auto& transfer = reinterpret_cast<Transfer&>(operation);
    Network& network = *transfer.network;
    Connection& to = *transfer.connection;
    network.moving_.fetch_sub(1, std::memory_order_relaxed);
    transfer.ended(transfer, error);
    if (error != 0) network.lost(to);
    network.bell_.ring();
}

}  // namespace osc::net
