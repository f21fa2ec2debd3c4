// The shared memory of the channel between the processes of a node: the queue of messages to one process's agent, and
// to its threads that wait. docs/ARCHITECTURE.md ("The agent of a node", "Threads that wait") has the protocols and why
// they are right.
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
inline constexpr std::size_t kQuickBody = 976;                 // of a question, and of its answer
inline constexpr std::uint32_t kSenders = 1024;                // processes that can send to one agent
inline constexpr std::uint32_t kIntroduction = kMessageSlots;  // a sender's links behind those of its slots
inline constexpr std::uint32_t kQuestion = kMessageSlots + 1;
inline constexpr std::uint32_t kLinksPerSender = kMessageSlots + 2;
inline constexpr std::uint32_t kLinks = kSenders * kLinksPerSender;
inline constexpr std::uint32_t kClosed = ~std::uint32_t{0};  // of Mailbox::head: the agent has ended

/// Shown, Claimed and Withdrawn: of questions, which have a word of their own for Answered. The sender has left it to a
/// thread that watches the slot, without a link in the mailbox; the target has begun to execute it; the sender has
/// given it up before, and its link is still in the mailbox.
enum class MessageState : std::uint32_t { Idle, Sent, Shown, Claimed, Answered, Withdrawn };

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

/// One operation for a thread of the target that waits, in the sender's arena, one for each target. The sender may take
/// it back until the target claims it. Then the slot stays unusable until the target has taken its link out of the
/// mailbox: no link is pushed twice. Where a thread of the target watches the slot itself, the sender pushes no link.
/// The sender polls a line that the target writes once, with a small answer.
struct alignas(64) QuestionSlot {
    std::atomic<MessageState> state{MessageState::Idle};
    std::uint32_t bytes = 0;  // of the record and its data
    std::uint64_t window = 0;
    alignas(16) std::byte body[kQuickBody];
    alignas(64) std::atomic<std::uint32_t> answered{0};
    Status status = Status::Done;
    shm::Doorbell bell;  // the sender sleeps here
    std::uint64_t flow = 0;
    std::atomic<std::uint32_t> watched{0};  // a guess: a wrong 1 costs the sender its patience once
    alignas(16) std::byte reply[kQuickBody];
};
static_assert(offsetof(QuestionSlot, body) == 16 && sizeof(QuestionSlot) == 2048);

enum class SenderState : std::uint32_t { Unused, Accepted, Refused };

/// A sender in an agent's mailbox. The sender writes it once, before it pushes the introduction.
struct alignas(64) SenderSlot {
    shm::ArenaAddress arena;
    std::uint64_t outbox = 0;    // offset in the arena
    std::uint64_t question = 0;  // the same of the QuestionSlot for this target
    std::atomic<SenderState> state{SenderState::Unused};
    shm::Doorbell bell;
    std::atomic<std::uint32_t> links[kLinksPerSender]{};  // the link pushed before this one, + 1
};

struct alignas(64) Mailbox {
    std::atomic<std::uint32_t> head{0};  // the link pushed last, + 1; 0: none
    // Odd while a thread of the process waits and reads the mailbox, as far as is known. The thread makes it odd, and
    // even when its wait ends. A wait inside the host ends unseen: a sender that gets no answer makes it even.
    alignas(64) std::atomic<std::uint32_t> attended{0};
    alignas(64) shm::Doorbell bell;  // the agent sleeps here
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

constexpr bool is_attended(std::uint32_t attended) {
    return attended % 2 != 0;
}

/// A thread that was expected to read the mailbox has not done so since `attended` was `seen`. Wakes the agent.
inline void give_up(Mailbox& box, std::uint32_t seen) {
    if (is_attended(seen)) box.attended.compare_exchange_strong(seen, seen + 1, std::memory_order_seq_cst);
    box.bell.ring();
}

/// Appends a link; false if the agent has ended. The agent sees everything that was written before. Nothing wakes it
/// while the mailbox is attended: the sender gives up in time.
inline bool push(Mailbox& box, std::uint32_t sender_slot, std::uint32_t number) {
    const std::uint32_t link = sender_slot * kLinksPerSender + number;
    std::atomic<std::uint32_t>& next = box.sender_slots[sender_slot].links[number];
    std::uint32_t seen = 0;  // nearly always; reading it first would fetch the cache line twice
    do {
        if (seen == kClosed) return false;
        if (next.load(std::memory_order_relaxed) != seen) next.store(seen, std::memory_order_relaxed);
    } while (!box.head.compare_exchange_weak(seen, link + 1, std::memory_order_seq_cst, std::memory_order_relaxed));
    if (!is_attended(box.attended.load(std::memory_order_seq_cst))) box.bell.ring();
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
