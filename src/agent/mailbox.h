// The queue of messages to one process's agent, in shared memory. Every process sends from slots of its own arena (its
// outbox), so the memory per process does not grow with the number of processes, a sender is limited by its own slots
// only, and the agent never waits for a sender. The target's mailbox holds just the order of arrival: a stack of
// links, pushed by one compare-and-swap, taken whole by one exchange and read backwards, first come first served.
// A sender that dies has either pushed or not; it leaves nothing half done. docs/ARCHITECTURE.md argues the details.
//
// A sender introduces itself once, by a card that says where its outbox is, and is accepted when the agent has mapped
// it. The links live in the cards, in the target's memory, so that a sender that cannot be mapped breaks no chain.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "agent/message.h"
#include "transport/shm/arena.h"
#include "transport/shm/wait.h"

namespace osc::agent {

inline constexpr std::uint32_t kSlots = 8;                      // messages of one process under way
inline constexpr std::size_t kPayload = std::size_t{32} << 10;  // bytes
inline constexpr std::uint32_t kCards = 1024;                   // processes that can send to one agent
inline constexpr std::uint32_t kLinksPerCard = kSlots + 1;      // the last is the introduction's
inline constexpr std::uint32_t kLinks = kCards * kLinksPerCard;
inline constexpr std::uint32_t kClosed = ~std::uint32_t{0};  // of Mailbox::head: the agent has ended

enum class SlotState : std::uint32_t { Idle, Sent, Answered };

/// A message under way, in its sender's arena. The sender writes all of it before it pushes the link; then the agent
/// alone works on it until it has set `state` to Answered.
struct alignas(64) Slot {
    std::atomic<SlotState> state{SlotState::Idle};
    Status status = Status::Done;
    shm::Doorbell bell;  // the sender sleeps here
    Header header;
    alignas(64) std::byte payload[kPayload];
};

struct OutboxMemory {
    Slot slots[kSlots];
};

enum class CardState : std::uint32_t { Unused, Accepted, Refused };

/// A sender as the agent knows it. Written once, before the introduction is pushed.
struct alignas(64) Card {
    shm::ArenaAddress arena;
    std::uint64_t outbox = 0;  // offset in the arena
    std::atomic<CardState> state{CardState::Unused};
    shm::Doorbell bell;
    std::atomic<std::uint32_t> links[kLinksPerCard]{};  // the link pushed before this one, + 1
};

struct alignas(64) Mailbox {
    std::atomic<std::uint32_t> head{0};  // the link pushed last, + 1; 0: none
    alignas(64) shm::Doorbell bell;      // the agent sleeps here
    std::atomic<std::uint32_t> cards_taken{0};
    // To tell the agent's death; written before the mailbox is made known.
    std::int32_t process = 0;
    std::int32_t thread = 0;
    std::uint64_t thread_start_time = 0;
    Card cards[kCards];
};

/// Appends a link; false if the agent has ended. Everything written before is visible to the agent.
inline bool push(Mailbox& box, std::uint32_t link) {
    std::atomic<std::uint32_t>& next = box.cards[link / kLinksPerCard].links[link % kLinksPerCard];
    std::uint32_t seen = box.head.load(std::memory_order_relaxed);
    do {
        if (seen == kClosed) return false;
        next.store(seen, std::memory_order_relaxed);
    } while (!box.head.compare_exchange_weak(seen, link + 1, std::memory_order_seq_cst, std::memory_order_relaxed));
    box.bell.ring();
    return true;
}

/// Whether the agent of `box`, in the arena of its process, still runs. Slow: asks the system.
inline bool agent_alive(const Mailbox& box, const shm::PeerArena& arena) {
    if (box.head.load(std::memory_order_seq_cst) == kClosed) return false;
    // A thread number of another PID namespace says nothing here; but the agent ends with its process, or says so.
    if (arena.adopted()) return arena.owner_lives();
    const std::uint64_t start = shm::process_start_time(box.thread);
    if (start != shm::kUnknownStart && box.thread_start_time != shm::kUnknownStart)
        return start == box.thread_start_time;
    // Where start times cannot be read (no descriptor left), the numbers are believed.
    return ::syscall(SYS_tgkill, box.process, box.thread, 0) == 0 || errno != ESRCH;
}

}  // namespace osc::agent
