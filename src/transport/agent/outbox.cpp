// Slots and introductions.
#include "transport/agent/outbox.h"

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

// Waits for a message that was left, keeps its fault, and frees its slot.
void Outbox::end(std::size_t which) {
    const Left message = left_[which];
    left_.erase(left_.begin() + static_cast<std::ptrdiff_t>(which));
    left_count_.fetch_sub(1, std::memory_order_relaxed);
    Slot& used = slot(message.slot);
    const bool answered = await_answer(used, *message.connection->box, *message.connection->arena);
    Pending& owner = *message.owner;
    if (owner.fault == Fault::None) {
        owner.fault = answered ? fault_of(used.status, message.rank) : not_answered(message.rank);
        if (owner.fault != Fault::None) {
            owner.text = diag::fault_text();
            owner.unsettled.fetch_add(1, std::memory_order_relaxed);
        }
    }
    give_back(message.slot);
    owner.unsettled.fetch_sub(1, std::memory_order_release);
}

bool Outbox::reap() {
    const std::lock_guard lock(left_mutex_);
    if (left_.empty()) return false;
    bool any = false;
    for (std::size_t i = 0; i < left_.size();) {
        if (slot(left_[i].slot).state.load(std::memory_order_acquire) == SlotState::Answered) {
            end(i);
            any = true;
        } else {
            ++i;
        }
    }
    if (!any) end(0);
    return true;
}

Fault Outbox::settle(Pending& owner, std::uint32_t rank) {
    const std::lock_guard lock(left_mutex_);
    for (std::size_t i = 0; i < left_.size();) {
        if (left_[i].owner == &owner && (rank == kEveryRank || left_[i].rank == rank)) {
            end(i);
        } else {
            ++i;
        }
    }
    if (owner.fault == Fault::None) return Fault::None;
    owner.unsettled.fetch_sub(1, std::memory_order_relaxed);
    return diag::fail(std::exchange(owner.fault, Fault::None), "%s", owner.text.c_str());
}

}  // namespace osc::agent
