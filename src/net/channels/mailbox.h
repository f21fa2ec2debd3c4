// The shared memory of the channel between the processes of a node: the queue of messages to one process's agent.
// docs/ARCHITECTURE.md ("The agent of a node") has the protocol and why it is right.
//
// Each process sends from the message slots of its own arena (its outbox). So a process's memory does not grow with the
// number of processes, a sender is limited by its own slots only, and the agent never waits for a sender. The target's
// mailbox holds only the order of arrival: a stack of links. A sender pushes a link by one compare-and-swap; the agent
// takes the stack by one exchange and serves it oldest first. A sender that dies has pushed or not: nothing is half
// done.
//
// A sender introduces itself once by a sender slot, which says where its outbox is. The agent accepts it when it has
// mapped the outbox. The links lie in the sender slots, in the target's memory, so a sender that the agent cannot map
// breaks no chain.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "base/process_state.h"
#include "net/wire.h"
#include "shm/arena.h"
#include "shm/wait.h"

namespace osc::net {

inline constexpr std::uint32_t kMessageSlots = 8;  // messages of a process in flight
inline constexpr std::size_t kMessageBody = sizeof(Record) + (std::size_t{32} << 10);  // bytes
inline constexpr std::uint32_t kSenders = 1024;                      // processes that can send to one agent
inline constexpr std::uint32_t kLinksPerSender = kMessageSlots + 1;  // the last is the introduction's
inline constexpr std::uint32_t kLinks = kSenders * kLinksPerSender;
inline constexpr std::uint32_t kClosed = ~std::uint32_t{0};  // of Mailbox::head: the agent has ended

enum class MessageState : std::uint32_t { Idle, Sent, Answered };

/// A message and its reply, in its sender's arena. The sender writes it before it pushes the link; then only the agent
/// works on it, until the agent has set `state` to Answered.
struct alignas(64) MessageSlot {
    std::atomic<MessageState> state{MessageState::Idle};
    Status status = Status::Done;
    shm::Doorbell bell;        // the sender sleeps here
    std::uint64_t window = 0;  // the agent's number for it
    std::uint64_t flow = 0;    // of the message in the timeline; 0: none
    // Of the records; the reply's data begins behind them. Aligned so that the data of the first record begins a cache
    // line.
    alignas(16) std::uint64_t bytes = 0;
    alignas(16) std::byte body[kMessageBody];
};
static_assert((offsetof(MessageSlot, body) + sizeof(Record)) % 64 == 0 && sizeof(MessageSlot) == 64 + (32 << 10));

struct OutboxMemory {
    MessageSlot slots[kMessageSlots];
};

enum class SenderState : std::uint32_t { Unused, Accepted, Refused };

/// A sender in an agent's mailbox. The sender writes it once, before it pushes the introduction.
struct alignas(64) SenderSlot {
    shm::ArenaAddress arena;
    std::uint64_t outbox = 0;  // offset in the arena
    std::atomic<SenderState> state{SenderState::Unused};
    shm::Doorbell bell;
    std::atomic<std::uint32_t> links[kLinksPerSender]{};  // the link pushed before this one, + 1
};

struct alignas(64) Mailbox {
    std::atomic<std::uint32_t> head{0};  // the link pushed last, + 1; 0: none
    alignas(64) shm::Doorbell bell;      // the agent sleeps here
    std::atomic<std::uint32_t> sender_slots_taken{0};
    // To find out whether the agent has died; written before the mailbox is made known.
    std::int32_t process = 0;
    std::int32_t thread = 0;
    std::uint64_t thread_start_time = 0;
    SenderSlot sender_slots[kSenders];
};

/// Where a piece of an arena is mapped. A process's own arena is not mapped twice.
inline std::byte* map_once(shm::PeerArena& arena, std::uint64_t offset, std::size_t bytes) {
    shm::Arena& mine = shm::Arena::mine();
    return arena.address().token == mine.token() ? mine.at(offset) : arena.map(offset, bytes);
}

/// Appends a link; false if the agent has ended. The agent sees everything that was written before.
inline bool push(Mailbox& box, std::uint32_t sender_slot, std::uint32_t number) {
    const std::uint32_t link = sender_slot * kLinksPerSender + number;
    std::atomic<std::uint32_t>& next = box.sender_slots[sender_slot].links[number];
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
    // A thread number of another PID namespace says nothing here; but the agent ends with its process, or closes the
    // mailbox.
    if (arena.adopted()) return arena.owner_lives();
    const std::uint64_t start = base::process_start_time(box.thread);
    if (start != base::kUnknownStart && box.thread_start_time != base::kUnknownStart)
        return start == box.thread_start_time;
    // Without start times (no descriptor left) the number alone decides.
    return ::syscall(SYS_tgkill, box.process, box.thread, 0) == 0 || errno != ESRCH;
}

}  // namespace osc::net
