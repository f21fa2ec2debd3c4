// Driving the network: what has come, what is due, who has died; and the thread that does it.
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <utility>

#include "agent/network.h"

namespace osc::net {
namespace {

constexpr std::int64_t kSpinNs = 20000;        // after work, before the thread sleeps: one message brings the next
constexpr std::int64_t kLatelyNs = 200000;     // since the last poll of who may go on
constexpr std::int64_t kAskEvery = 200000000;  // for a sign of life

// True in a thread that handles what has arrived: it holds drive_ already.
thread_local bool t_driving = false;

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

std::int64_t now_ns() {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

// A process is gone: nobody waits for its replies any more, and what it held here is broken. Under drive_.
void Network::lost(Connection& peer) {
    peer.dead.store(true, std::memory_order_seq_cst);
    std::vector<Sender*> orphans;
    {
        const std::lock_guard lock(mutex_);
        for (std::uint32_t number = 0; number < pending_.size(); ++number) {
            if (pending_[number].connection != &peer) continue;
            orphans.push_back(pending_[number].sender);
            pending_[number] = {};
            free_numbers_.push_back(number);
        }
    }
    for (Sender* sender : orphans)
        sender->answered(Status::PeerDied, nullptr, 0);
    hosted_.died(peer.token);
    bell_.ring();
}

void Network::received(std::byte* message, std::size_t bytes) {
    Frame frame;
    Connection* from = check(message, bytes, card_.secret, frame) ? find(frame.sender) : nullptr;
    SlotsIn* slots = from != nullptr ? from->slots_in.load(std::memory_order_relaxed) : nullptr;
    if (slots != nullptr) take_slots(*from, *slots, true);
    if (!frames(message, bytes)) return;
    if (slots != nullptr)
        slots->sent();
    else if (from->ordinary < kOfferAfter && ++from->ordinary == kOfferAfter)
        offer_slots(*from);
}

// False if this was not from a process of the job, or not all of it.
bool Network::frames(std::byte* message, std::size_t bytes) {
    do {
        Frame frame;
        Connection* from = check(message, bytes, card_.secret, frame) ? find(frame.sender) : nullptr;
        if (from == nullptr) {
            counts_.strangers.fetch_add(1, std::memory_order_relaxed);
            return false;
        }
        handle(*from, frame, message + sizeof frame);
        message += sizeof frame + frame.bytes;
        bytes -= sizeof frame + frame.bytes;
    } while (bytes > 0);
    return true;
}

void Network::handle(Connection& from, const Frame& frame, const std::byte* body) {
    from.heard.store(now_ns(), std::memory_order_relaxed);
    from.asked.store(0, std::memory_order_relaxed);
    switch (frame.kind) {
        case FrameKind::Unhurried:
        case FrameKind::Request:
        case FrameKind::Query:
        case FrameKind::Notice: {
            Frame request = frame;
            unhurried_ = frame.kind == FrameKind::Unhurried;
            if (unhurried_) request.kind = FrameKind::Request;
            hosted_.request(request, body);
            unhurried_ = false;
            return bell_.ring();
        }
        case FrameKind::Reply:
            return reply_came(from, frame, body);
        case FrameKind::Ping:
            return control(from, FrameKind::Pong);
        case FrameKind::Stir:
            direct_until_.store(now_ns() + kStirNs, std::memory_order_relaxed);
            return warm_.store(kLongWarm, std::memory_order_relaxed);
        case FrameKind::Pong:
            from.pongs.fetch_add(1, std::memory_order_release);
            return bell_.ring();
        case FrameKind::Slots:
            return slots_offered(from, body, frame.bytes);
        case FrameKind::Begin:
            if (SlotsIn* slots = from.slots_in.load(std::memory_order_relaxed); slots != nullptr) slots->begin();
            return;
        case FrameKind::Emptied:
            return from.slots_out.emptied(static_cast<std::uint16_t>(frame.number));
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
    sender->answered(head.status, body + sizeof head, frame.bytes - sizeof head);
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
    unhurried_ ? hold(message) : send(message);
}

void Network::control(Connection& to, FrameKind kind, std::uint32_t number) {
    Message* message = claim();
    address(message, to, kind, 0, 0, number);
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

void Network::send_unsent() {
    std::vector<Connection*> stuck;
    {
        const std::lock_guard lock(mutex_);
        stuck = stuck_;
    }
    for (Connection* to : stuck) {
        for (;;) {
            Message* first = nullptr;
            {
                const std::lock_guard lock(mutex_);
                first = to->unsent.front();
            }
            if (!post(first)) break;
            const std::lock_guard lock(mutex_);
            to->unsent.pop_front();
            if (!to->unsent.empty()) continue;
            std::erase(stuck_, to);
            stuck_count_.store(stuck_.size(), std::memory_order_relaxed);
            break;
        }
    }
}

// Who is waited for, in vain: those who hold locks that others want, those who take no messages, and those whose death
// was found by somebody who could not tell it.
void Network::look_for_dead() {
    hosted_.look_for_dead();
    std::vector<std::uint64_t> holders;
    hosted_.holders(holders);
    std::vector<Connection*> doubtful;
    for (const std::uint64_t token : holders)
        if (Connection* holder = find(token); holder != nullptr) doubtful.push_back(holder);
    {
        const std::lock_guard lock(mutex_);
        doubtful.insert(doubtful.end(), stuck_.begin(), stuck_.end());
        for (const Pending& pending : pending_)
            if (pending.connection != nullptr && pending.connection->dead.load(std::memory_order_relaxed))
                doubtful.push_back(pending.connection);
    }
    for (Connection* peer : doubtful)
        if (!alive(*peer)) lost(*peer);
}

// What no message brings about.
void Network::tick(int events) {
    if (events == 0) send_held();
    if (stuck_count_.load(std::memory_order_relaxed) > 0) send_unsent();
    // What has waited and goes on now may be what this process sleeps for: no message comes that would tell it.
    const bool waited = hosted_.waits();
    lock_waits_ = waited && hosted_.resume();
    if (waited) bell_.ring();
    drove_ = now_ns();
    if (drove_ - looked_ < kAskEvery) return;
    looked_ = drove_;
    lifeline_.drain();
    look_for_dead();
}

void Network::keep_warm() {
    if (warm_.load(std::memory_order_relaxed) < kWarm) warm_.store(kWarm, std::memory_order_relaxed);
}

int Network::drive() {
    t_driving = true;
    int events = endpoint_->poll(*this);
    idle_polls_ += events == 0 ? 1 : 0;
    events += take_slots();
    tick(events);
    t_driving = false;
    if (events > 0) keep_warm();
    return events;
}

// Drives once; true if something happened. Who drives now and then takes what there is while the thread rests, and does
// not keep it away.
bool Network::try_drive(Drives who) {
    if (t_driving) return false;
    if (!drive_.try_lock()) {
        const bool asleep = asleep_.load(std::memory_order_seq_cst);
        if (who == Drives::Throughout) {
            driven_.store(now_ns(), std::memory_order_relaxed);  // almost: the thread is to leave it to this one
            if (asleep) endpoint_->wake();
        }
        // Whoever drives may need this core for it.
        if (who == Drives::Throughout || !asleep) ::sched_yield();
        return false;
    }
    const std::int64_t began = now_ns();
    const int events = drive();
    if (who == Drives::Throughout) {
        driven_.store(drove_, std::memory_order_relaxed);
        nap_.prolong(began, drove_);
    }
    drive_.unlock();
    return events > 0;
}

// As if this had driven since `began`.
void Network::keep_thread_away(std::int64_t began) {
    if (t_driving) return;
    if (!drive_.try_lock()) {
        driven_.store(now_ns(), std::memory_order_relaxed);
        if (asleep_.load(std::memory_order_seq_cst)) endpoint_->wake();
        return;
    }
    drove_ = now_ns();
    driven_.store(drove_, std::memory_order_relaxed);
    nap_.prolong(began, drove_);
    drive_.unlock();
}

void Network::poll() {
    if (endpoint_ == nullptr) return;
    try_drive();
    resume_backlog();
}

// Whether the host waits. What this process has under way itself counts as that: there may be parts of it that nothing
// wakes the thread for.
bool Network::polls_throughout() {
    if (now_ns() - polled_.load(std::memory_order_relaxed) > kPollPause) polls_.store(0, std::memory_order_relaxed);
    const int polls = polls_.load(std::memory_order_relaxed);
    if (polls < kManyPolls) polls_.store(polls + 1, std::memory_order_relaxed);
    return polls >= kManyPolls || moving_.load(std::memory_order_relaxed) > 0 ||
           held_count_.load(std::memory_order_relaxed) > 0 || stuck_count_.load(std::memory_order_relaxed) > 0;
}

// The thread keeps out of the way of a host that waits, so between two threads of one core nothing has to change hands.
// A host that looks in now and then leaves the thread to it, or others would wait for its next look. What nobody has
// asked for lately costs the host's loops one look at a number.
void Network::host_polls() {
    if (warm_.load(std::memory_order_relaxed) <= 0 || waiters_.load(std::memory_order_relaxed) > 0) return;
    counts_.host_polls.fetch_add(1, std::memory_order_relaxed);
    const Drives who = polls_throughout() ? Drives::Throughout : Drives::NowAndThen;
    if (who == Drives::Throughout && warm_.load(std::memory_order_relaxed) > kWarm)
        for (int i = 1; i < kDirectPolls; ++i)
            try_drive();
    const bool cooled = !try_drive(who) && warm_.fetch_sub(1, std::memory_order_relaxed) == 1;
    if (cooled && who == Drives::Throughout) nap_.end();  // nobody drives any more, however much the host polls
    polled_.store(now_ns(), std::memory_order_relaxed);
    resume_backlog();
}

// After a round that did not end the wait. The host is driven now and then: these rounds take some milliseconds
// together, and the wait that follows drives it in each of its own (invariant I3).
void Network::rest(int round, int quiet) {
    const shm::WaitPolicy policy = shm::wait_policy();
    if (policy.progress != nullptr && round % 16 == 0) policy.progress();
    if (quiet > policy.spin) ::sched_yield();
}

void* Network::thread_main(void* self) {
    static_cast<Network*>(self)->run();
    return nullptr;
}

void Network::run() {
    take_short_turns();
    std::int64_t last_event = now_ns();
    for (;;) {
        const std::uint32_t naps_ended = nap_.ended();
        if (stopping_.load(std::memory_order_seq_cst)) return;
        std::int64_t now = now_ns();
        const bool waits = waiters_.load(std::memory_order_seq_cst) > 0;
        // Not by waiting for the lock: whoever drives would have to wake this thread each time.
        if (waits || now - driven_.load(std::memory_order_relaxed) < kLatelyNs || !drive_.try_lock()) {
            nap_.rest(naps_ended, now);
            // Whoever was told of direct accesses meanwhile may not drive any more: there is still time for them.
            const std::int64_t told = direct_until_.load(std::memory_order_relaxed) - kStirNs;
            if (told >= now) direct_until_.store(now_ns() + kStirNs, std::memory_order_relaxed);
            continue;
        }
        const int events = drive();
        now = now_ns();
        if (events > 0) {
            last_event = now;
        } else if (now - last_event > kSpinNs && now > direct_until_.load(std::memory_order_relaxed)) {
            asleep_.store(true, std::memory_order_seq_cst);
            const bool soon = lock_waits_ || stuck_count_.load(std::memory_order_relaxed) > 0 ||
                              resume_soon_.load(std::memory_order_seq_cst);
            counts_.sleeps.fetch_add(1, std::memory_order_relaxed);
            t_driving = true;
            // Whoever wants to drive, or to end this, has said so before it looked at asleep_.
            const bool wanted =
                stopping_.load(std::memory_order_seq_cst) || waiters_.load(std::memory_order_seq_cst) > 0;
            const bool woke = !wanted && endpoint_->sleep(soon ? 1 : 500, *this) > 0;
            t_driving = false;
            asleep_.store(false, std::memory_order_seq_cst);
            if (woke) {
                last_event = now_ns();
                keep_warm();
            }
        } else {
            shm::cpu_relax();
        }
        drive_.unlock();
        resume_backlog();
    }
}

}  // namespace osc::net
