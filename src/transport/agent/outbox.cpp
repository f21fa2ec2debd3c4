// Slots and introductions.
#include "transport/agent/outbox.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "transport/agent/answer.h"

namespace osc::agent {

Outbox& Outbox::mine() {
    static auto* outbox = new Outbox;  // never destroyed: an agent may still answer while the process ends
    return *outbox;
}

Outbox::~Outbox() {
    if (piece_) shm::Arena::mine().release(piece_.address);
}

Fault Outbox::connect(std::shared_ptr<shm::PeerArena> arena, std::uint64_t mailbox, Connection*& connection) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Connection>& known = connections_[{arena->address().token, mailbox}];
    if (known == nullptr) {
        auto made = std::make_unique<Connection>();
        const bool own = arena->address().token == shm::Arena::mine().address().token;
        std::byte* box = own ? shm::Arena::mine().at(mailbox) : arena->map(mailbox, sizeof(Mailbox));
        if (box == nullptr) return diag::fail(Fault::NoMem, "cannot map the mailbox of the target's agent");
        made->box = reinterpret_cast<Mailbox*>(box);
        made->arena = std::move(arena);
        if (const Fault fault = introduce(*made); fault != Fault::None) return fault;
        known = std::move(made);
    }
    connection = known.get();
    return Fault::None;
}

Fault Outbox::introduce(Connection& connection) {
    shm::Arena& arena = shm::Arena::mine();
    if (memory_ == nullptr) {
        piece_ = arena.allocate(sizeof(OutboxMemory), alignof(OutboxMemory), false);
        if (!piece_) return diag::fail(Fault::NoMem, "no shared memory for messages to agents");
        memory_ = new (piece_.address) OutboxMemory;
    }
    Mailbox& box = *connection.box;
    connection.card = box.cards_taken.fetch_add(1, std::memory_order_relaxed);
    if (connection.card >= kCards) {
        box.cards_taken.fetch_sub(1, std::memory_order_relaxed);
        return diag::fail(Fault::NoMem, "an agent serves at most %u processes", kCards);
    }
    Card& card = box.cards[connection.card];
    card.arena = arena.address();
    card.outbox = piece_.offset;
    const bool sent = push(box, connection.card * kLinksPerCard + kSlots);
    const auto met = [&] { return card.state.load(std::memory_order_seq_cst) != CardState::Unused; };
    if (!sent || !shm::wait_until(card.bell, met, [&] { return !agent_alive(box, *connection.arena); }))
        return diag::fail(Fault::Dead, "the agent of the target has ended");
    if (card.state.load(std::memory_order_relaxed) != CardState::Accepted)
        return diag::fail(Fault::NoMem, "the target's agent cannot map the shared memory of this process");
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
        // The threads that have the slots give them back, or leave them.
        shm::wait_until(
            freed_, [&] { return free_.load(std::memory_order_seq_cst) != 0 || left_count_.load() != 0; },
            [] { return false; });
    }
}

void Outbox::give_back(std::uint32_t number) {
    free_.fetch_or(1u << number, std::memory_order_seq_cst);
    freed_.ring();
}

void Outbox::leave(const Left& message) {
    message.owner->unsettled.fetch_add(1, std::memory_order_relaxed);
    {
        const std::lock_guard lock(left_mutex_);
        left_.push_back(message);
        left_count_.fetch_add(1, std::memory_order_seq_cst);
    }
    freed_.ring();
}

// Waits for the answer to a message that was left, and ends it. Releases the lock meanwhile: a wait drives the host
// MPI.
void Outbox::await(std::unique_lock<std::mutex>& lock, std::size_t which) {
    left_[which].awaited = true;
    const Left message = left_[which];
    lock.unlock();
    const bool answered = await_answer(slot(message.slot), *message.connection->box, *message.connection->arena);
    lock.lock();
    const auto found = std::ranges::find_if(left_, [&](const Left& other) { return other.slot == message.slot; });
    end(static_cast<std::size_t>(found - left_.begin()), answered);
}

// Waits until another thread has ended a message.
void Outbox::await_ended(std::unique_lock<std::mutex>& lock) {
    const std::uint32_t seen = ended_.load(std::memory_order_seq_cst);
    lock.unlock();
    shm::wait_until(
        freed_, [&] { return ended_.load(std::memory_order_seq_cst) != seen; }, [] { return false; });
    lock.lock();
}

// Keeps the fault of a message that was left, and frees its slot. Its owner may go when the lock is released.
void Outbox::end(std::size_t which, bool answered) {
    const Left message = left_[which];
    left_.erase(left_.begin() + static_cast<std::ptrdiff_t>(which));
    left_count_.fetch_sub(1, std::memory_order_relaxed);
    Pending& owner = *message.owner;
    if (owner.fault == Fault::None) {
        owner.fault = answered ? fault_of(slot(message.slot).status, message.rank) : not_answered(message.rank);
        if (owner.fault != Fault::None) {
            owner.text = diag::fault_text();
            owner.unsettled.fetch_add(1, std::memory_order_relaxed);
        }
    }
    owner.unsettled.fetch_sub(1, std::memory_order_release);
    ended_.fetch_add(1, std::memory_order_seq_cst);
    give_back(message.slot);
}

bool Outbox::reap() {
    std::unique_lock lock(left_mutex_);
    if (left_.empty()) return false;
    bool any = false;
    for (std::size_t i = 0; i < left_.size();) {
        if (!left_[i].awaited && slot(left_[i].slot).state.load(std::memory_order_acquire) == SlotState::Answered) {
            end(i, true);
            any = true;
        } else {
            ++i;
        }
    }
    if (any) return true;
    const auto oldest = std::ranges::find_if(left_, [](const Left& message) { return !message.awaited; });
    if (oldest != left_.end())
        await(lock, static_cast<std::size_t>(oldest - left_.begin()));
    else
        await_ended(lock);
    return true;
}

Fault Outbox::settle(Pending& owner, std::uint32_t rank) {
    std::unique_lock lock(left_mutex_);
    for (;;) {
        const auto next = std::ranges::find_if(left_, [&](const Left& message) {
            return message.owner == &owner && (rank == kEveryRank || message.rank == rank);
        });
        if (next == left_.end()) break;
        if (next->awaited)
            await_ended(lock);
        else
            await(lock, static_cast<std::size_t>(next - left_.begin()));
    }
    if (owner.fault == Fault::None) return Fault::None;
    owner.unsettled.fetch_sub(1, std::memory_order_relaxed);
    return diag::fail(std::exchange(owner.fault, Fault::None), "%s", owner.text.c_str());
}

}  // namespace osc::agent
