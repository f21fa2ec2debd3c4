// Message slots, introductions, and the wait for replies.
#include "net/channels/outbox.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "local/direct.h"
#include "net/channels/agent.h"
#include "trace/recorder.h"

namespace osc::net {
namespace {

constexpr int kPolls = 150;  // some microseconds: an agent that is awake on another core has answered by then
// For the answer to a question, in ns: the thread that waits polls several times a microsecond.
constexpr std::int64_t kPatience = 3000;
constexpr std::int64_t kBulkPatience = 30000;  // the same for messages, up to 8 of 32 KiB

// Sleeps early and once: the sender's wake-up of the agent may have put the agent on this very core, where it runs only
// when this thread sleeps. Bounded; the common wait loop does the rest.
void sleep_early(shm::Doorbell& bell, base::FunctionRef<bool()> done) {
    for (int i = 0; i < kPolls; ++i) {
        if (done()) return;
        shm::cpu_relax();
    }
    bell.sleep(done, 1);
}

}  // namespace

Outbox& Outbox::mine() {
    static auto* outbox = new Outbox;  // never destroyed: an agent may still answer while the process ends
    return *outbox;
}

Outbox::~Outbox() {
    if (piece_) shm::Arena::mine().release(piece_.address);
}

// One thread introduces this process to an agent, without the mutex; others wait for that.
Fault Outbox::connect(std::shared_ptr<shm::PeerArena> arena, std::uint64_t mailbox, AgentRoute*& route) {
    using State = AgentRoute::State;
    std::unique_lock lock(mutex_);
    AgentRoute& its = routes_[{arena->address().token, mailbox}];
    route = &its;
    while (its.state == State::Introducing) {
        lock.unlock();
        shm::wait_until(
            introduced_, [&] { return its.state != State::Introducing; }, [] { return false; });
        lock.lock();
    }
    if (its.state == State::Met) return Fault::None;
    if (const Fault fault = prepare(its, std::move(arena), mailbox); fault != Fault::None) return fault;
    its.state = State::Introducing;
    lock.unlock();
    const Fault fault = introduce(its);
    its.state.exchange(fault == Fault::None ? State::Met : State::Unmet);
    introduced_.ring();
    return fault;
}

// Makes what an introduction needs, under the mutex: this process's outbox, the agent's mailbox and a slot there.
Fault Outbox::prepare(AgentRoute& route, std::shared_ptr<shm::PeerArena> arena, std::uint64_t mailbox) {
    if (memory_ == nullptr) {
        piece_ = shm::Arena::mine().allocate(sizeof(OutboxMemory), alignof(OutboxMemory), false);
        if (!piece_) return base::fail(Fault::NoMem, "no shared memory for messages to agents");
        memory_ = new (piece_.address) OutboxMemory;
    }
    if (route.box == nullptr) {
        route.box = reinterpret_cast<Mailbox*>(map_once(*arena, mailbox, sizeof(Mailbox)));
        if (route.box == nullptr) return base::fail(Fault::NoMem, "cannot map the mailbox of the target's agent");
        route.arena = std::move(arena);
    }
    if (route.question == nullptr) {
        route.question_piece = shm::Arena::mine().allocate(sizeof(QuestionSlot), alignof(QuestionSlot), false);
        if (!route.question_piece) return base::fail(Fault::NoMem, "no shared memory for messages to agents");
        route.question = new (route.question_piece.address) QuestionSlot;
    }
    if (route.sender_slot != kSenders) return Fault::None;
    std::atomic<std::uint32_t>& taken = route.box->sender_slots_taken;
    const std::uint32_t slot = taken.fetch_add(1, std::memory_order_relaxed);
    if (slot < kSenders) {
        route.sender_slot = slot;
        return Fault::None;
    }
    taken.fetch_sub(1, std::memory_order_relaxed);
    return base::fail(Fault::NoMem, "an agent serves at most %u processes", kSenders);
}

// A later attempt may push the link again: an agent that has refused has taken it out of its mailbox, and a dead one
// reads it no more.
Fault Outbox::introduce(AgentRoute& route) {
    Mailbox& box = *route.box;
    SenderSlot& slot = box.sender_slots[route.sender_slot];
    slot.arena = shm::Arena::mine().address();
    slot.outbox = piece_.offset;
    slot.question = route.question_piece.offset;
    if (slot.state == SenderState::Refused) slot.state = SenderState::Unused;
    const bool sent = push(box, route.sender_slot, kIntroduction);
    if (sent) give_up(box, box.attended.load(std::memory_order_seq_cst));  // only the agent accepts it
    const auto met = [&] { return slot.state.load(std::memory_order_seq_cst) != SenderState::Unused; };
    if (!sent || !shm::wait_until(slot.bell, met, [&] { return !agent_alive(box, *route.arena); }))
        return base::fail(Fault::Dead, "the agent of the target has ended");
    if (slot.state.load(std::memory_order_relaxed) != SenderState::Accepted)
        return base::fail(Fault::NoMem, "the target's agent cannot map the shared memory of this process");
    return Fault::None;
}

std::uint32_t Outbox::try_claim() {
    std::uint32_t seen = free_.load(std::memory_order_relaxed);
    while (seen != 0) {
        const auto number = static_cast<std::uint32_t>(std::countr_zero(seen));
        if (free_.compare_exchange_weak(seen, seen & ~(1u << number), std::memory_order_acquire,
                                        std::memory_order_relaxed))
            return number;
    }
    return kNone;
}

std::uint32_t Outbox::claim() {
    for (;;) {
        const std::uint32_t number = try_claim();
        if (number != kNone) return number;
        if (reap()) continue;
        // The threads that have the slots give them back, or let this outbox track them.
        shm::wait_until(
            freed_, [&] { return free_.load(std::memory_order_seq_cst) != 0 || tracked_count_.load() != 0; },
            [] { return false; });
    }
}

void Outbox::give_back(std::uint32_t number) {
    segments_[number].clear();
    free_.fetch_or(1u << number, std::memory_order_seq_cst);
    freed_.ring();
}

namespace {

// Frees the question for other threads.
struct Asking {
    std::atomic<bool>& asking;
    ~Asking() { asking.store(false, std::memory_order_release); }
};

}  // namespace

std::optional<Status> Outbox::ask(AgentRoute& route, std::uint64_t window, const Record& record, const void* data,
                                  const void* compare, void* result) {
    Mailbox& box = *route.box;
    std::uint32_t seen = box.attended.load(std::memory_order_relaxed);
    if (!is_attended(seen) || route.asking.exchange(true, std::memory_order_acquire)) return std::nullopt;
    const Asking asking{route.asking};
    QuestionSlot& slot = *route.question;
    // Withdrawn, and its link still in the mailbox?
    const MessageState before = slot.state.load(std::memory_order_acquire);
    if (before != MessageState::Idle && before != MessageState::Claimed) return std::nullopt;
    std::memcpy(slot.body, &record, sizeof record);
    std::byte* const operand = slot.body + sizeof record;
    if (data != nullptr) shm::move_bytes(operand, data, record.bytes);
    if (compare != nullptr) shm::move_bytes(operand + record.bytes, compare, record.bytes);
    slot.bytes = static_cast<std::uint32_t>(sizeof record + padded(carried(record)));
    slot.window = window;
    slot.flow = trace::is_open() ? trace::new_flow() : 0;
    const trace::Span span(trace::pack(trace::Kind::AskAgent, 0, slot.bytes), slot.flow);
    // A question that is only shown has no link in the mailbox, so its sender may take it back at any time.
    const bool shown = slot.watched.load(std::memory_order_relaxed) != 0;
    const MessageState asked = shown ? MessageState::Shown : MessageState::Sent;
    slot.state.store(asked, std::memory_order_release);
    if (!shown && !push(box, route.sender_slot, kQuestion)) {
        slot.state.store(MessageState::Idle, std::memory_order_relaxed);
        return std::nullopt;
    }
    const auto answered = [&] { return slot.answered.load(std::memory_order_seq_cst) != 0; };
    std::int64_t end = 0;
    for (int i = 1; !answered(); ++i) {
        shm::cpu_relax();
        if (i % 16 != 0) continue;
        // Two processes that ask each other.
        Agent::mine().serve_now();
        const std::int64_t now = now_ns();
        if (end == 0) end = now + kPatience;
        if (now < end) continue;
        box.attended.compare_exchange_strong(seen, seen + 1, std::memory_order_seq_cst);
        MessageState unclaimed = asked;
        if (shown) slot.watched.store(0, std::memory_order_relaxed);
        if (slot.state.compare_exchange_strong(unclaimed, shown ? MessageState::Idle : MessageState::Withdrawn,
                                               std::memory_order_relaxed))
            return std::nullopt;
        if (!shm::wait_until(slot.bell, answered, [&] { return !agent_alive(box, *route.arena); }))
            return Status::PeerDied;
    }
    const Status status = slot.status;
    if (result != nullptr && status == Status::Done) shm::move_bytes(result, slot.reply, record.bytes);
    slot.answered.store(0, std::memory_order_relaxed);
    return status;
}

Status Outbox::await_reply(std::uint32_t number, const AgentRoute& route) {
    MessageSlot& message = slot(number);
    const auto done = [&] { return message.state.load(std::memory_order_seq_cst) == MessageState::Answered; };
    Mailbox& box = *route.box;
    for (const std::int64_t end = now_ns() + kBulkPatience;
         is_attended(box.attended.load(std::memory_order_seq_cst));) {
        for (int i = 0; i < 16; ++i) {
            if (done()) return message.status;
            shm::cpu_relax();
        }
        Agent::mine().serve_now();
        if (now_ns() > end) break;
    }
    // From here on the agent must have the message, unless a thread that waits has taken it.
    const auto insist = [&] {
        if (done()) return true;
        if (box.head.load(std::memory_order_seq_cst) != 0) give_up(box, box.attended.load(std::memory_order_seq_cst));
        return false;
    };
    sleep_early(message.bell, insist);
    const bool answered = shm::wait_until(message.bell, insist, [&] { return !agent_alive(*route.box, *route.arena); });
    return answered ? message.status : Status::PeerDied;
}

void Outbox::track(const SentMessage& message) {
    message.owner->incomplete.fetch_add(1, std::memory_order_relaxed);
    {
        const std::lock_guard lock(tracked_mutex_);
        tracked_.push_back(message);
        tracked_count_.fetch_add(1, std::memory_order_seq_cst);
    }
    freed_.ring();
}

// Waits for the reply to a tracked message, and ends it. Releases the lock meanwhile: a wait drives the host MPI.
void Outbox::await(std::unique_lock<std::mutex>& lock, std::size_t which) {
    tracked_[which].awaited = true;
    const SentMessage message = tracked_[which];
    lock.unlock();
    const Status status = await_reply(message.slot, *message.route);
    lock.lock();
    const auto found =
        std::ranges::find_if(tracked_, [&](const SentMessage& other) { return other.slot == message.slot; });
    end(static_cast<std::size_t>(found - tracked_.begin()), status);
}

// Waits until another thread has ended a message.
void Outbox::await_ended(std::unique_lock<std::mutex>& lock) {
    const std::uint32_t seen = ended_.load(std::memory_order_seq_cst);
    lock.unlock();
    shm::wait_until(
        freed_, [&] { return ended_.load(std::memory_order_seq_cst) != seen; }, [] { return false; });
    lock.lock();
}

// Records the fault of a tracked message, and frees its slot. The message's owner may be destroyed as soon as the lock
// is released.
void Outbox::end(std::size_t which, Status status) {
    const SentMessage message = tracked_[which];
    tracked_.erase(tracked_.begin() + static_cast<std::ptrdiff_t>(which));
    tracked_count_.fetch_sub(1, std::memory_order_relaxed);
    IncompleteOps& owner = *message.owner;
    if (!owner.fault.is_set() && status != Status::Done) {
        owner.fault.note(fault_of(status, message.rank));
        owner.incomplete.fetch_add(1, std::memory_order_relaxed);
    }
    owner.incomplete.fetch_sub(1, std::memory_order_release);
    ended_.fetch_add(1, std::memory_order_seq_cst);
    give_back(message.slot);
}

bool Outbox::reap() {
    std::unique_lock lock(tracked_mutex_);
    if (tracked_.empty()) return false;
    bool any = false;
    for (std::size_t i = 0; i < tracked_.size();) {
        if (!tracked_[i].awaited &&
            slot(tracked_[i].slot).state.load(std::memory_order_acquire) == MessageState::Answered) {
            end(i, slot(tracked_[i].slot).status);
            any = true;
        } else {
            ++i;
        }
    }
    if (any) return true;
    const auto oldest = std::ranges::find_if(tracked_, [](const SentMessage& message) { return !message.awaited; });
    if (oldest != tracked_.end())
        await(lock, static_cast<std::size_t>(oldest - tracked_.begin()));
    else
        await_ended(lock);
    return true;
}

Fault Outbox::complete_ops(IncompleteOps& owner, std::uint32_t rank) {
    std::unique_lock lock(tracked_mutex_);
    for (;;) {
        const auto next = std::ranges::find_if(tracked_, [&](const SentMessage& message) {
            return message.owner == &owner && (rank == shm::kEveryTarget || message.rank == rank);
        });
        if (next == tracked_.end()) break;
        if (next->awaited)
            await_ended(lock);
        else
            await(lock, static_cast<std::size_t>(next - tracked_.begin()));
    }
    if (owner.fault.is_set()) owner.incomplete.fetch_sub(1, std::memory_order_relaxed);
    return owner.fault.take();
}

}  // namespace osc::net
