// The sending side of the queue to agents: this process's message slots, in its own arena, and its routes to the agents
// that it has met. Made on first use; a fixed number of slots serves all targets.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/fault.h"
#include "net/channels/mailbox.h"
#include "net/origin/record_transport.h"
#include "shm/activity.h"

namespace osc::net {

/// A sender's way to one agent, valid for the process's life.
struct AgentRoute {
    enum class State : std::uint8_t { Unmet, Introducing, Met };
    std::atomic<State> state{State::Unmet};
    Mailbox* box = nullptr;
    std::uint32_t sender_slot = kSenders;   // kSenders: none yet
    std::shared_ptr<shm::PeerArena> arena;  // keeps the mailbox mapped
    shm::ArenaBlock question_piece;
    QuestionSlot* question = nullptr;
    std::atomic<bool> asking{false};  // a thread uses the question
};

/// The messages of one window's operations that no thread awaits yet, and the first fault of those that were answered.
/// The Outbox changes it, in any thread. The last call for it must be complete_ops().
struct IncompleteOps {
    /// Messages that are not known to be answered, and one more while a fault is unreported.
    std::atomic<std::uint32_t>& incomplete;
    base::FirstFault fault{};
};

/// A sent message that its sender does not await.
struct SentMessage {
    std::uint32_t slot;
    std::uint32_t rank;  // of the target
    const AgentRoute* route;
    IncompleteOps* owner;
    bool awaited = false;  // a thread waits for the reply, without the lock
};

inline constexpr std::uint32_t kNoRank = shm::kEveryTarget - 1;

/// Thread-safe, except that a claimed slot belongs to the thread that claimed it.
class Outbox {
  public:
    /// The outbox of this process.
    static Outbox& mine();

    Outbox() { tracked_.reserve(kMessageSlots); }
    ~Outbox();
    Outbox(const Outbox&) = delete;
    Outbox& operator=(const Outbox&) = delete;

    /// The route to the agent whose mailbox lies at `mailbox` of `arena`; introduces this process on first use.
    /// Fault::Dead if the agent has ended, Fault::NoMem if one of the two cannot map the other: then the next call
    /// tries again, by the same slot of the agent. May wait, and drives the host meanwhile.
    Fault connect(std::shared_ptr<shm::PeerArena> arena, std::uint64_t mailbox, AgentRoute*& route);

    static constexpr std::uint32_t kNone = ~std::uint32_t{0};
    /// A free slot's number, or kNone.
    std::uint32_t try_claim();
    /// Waits until another thread gives a slot back. Only for a thread that has none.
    std::uint32_t claim();
    void give_back(std::uint32_t number);

    /// Slots that may stay claimed between the calls of a program; the others serve calls that wait for a slot.
    static constexpr std::uint32_t kMostKept = kMessageSlots / 2;
    /// Whether the caller may keep one slot after the other, until keep_no_more().
    bool keep() {
        if (kept_.fetch_add(1, std::memory_order_relaxed) < kMostKept) return true;
        keep_no_more();
        return false;
    }
    void keep_no_more() { kept_.fetch_sub(1, std::memory_order_relaxed); }

    /// Has a thread of the target that waits execute one operation: its status. Nothing is done, and no value returned,
    /// if no thread of the target seems to wait, none answers within some microseconds, or another thread asks.
    /// `data` and `compare`: what the record carries; `result`: for what it returns. All of that together fits
    /// kQuickBody.
    static std::optional<Status> ask(AgentRoute& route, std::uint64_t window, const Record& record, const void* data,
                                     const void* compare, void* result);

    /// Waits for the reply to the message in a slot: its status, Status::PeerDied if the agent has ended before.
    Status await_reply(std::uint32_t number, const AgentRoute& route);

    /// Takes over a sent message, with its slot.
    void track(const SentMessage& message);
    /// Gives back the slots of tracked messages that are answered; if none is, waits for the oldest. False if none is
    /// tracked.
    bool reap();
    /// Waits for the tracked messages of `owner` to one target or all, or for none (kNoRank), and returns the fault
    /// that is unreported, once.
    Fault complete_ops(IncompleteOps& owner, std::uint32_t rank);

    MessageSlot& slot(std::uint32_t number) { return memory_->slots[number]; }
    /// Where the reply in a claimed slot goes, in order. Empty in a free slot.
    std::vector<ReplySegment>& segments(std::uint32_t number) { return segments_[number]; }

  private:
    Fault prepare(AgentRoute& route, std::shared_ptr<shm::PeerArena> arena, std::uint64_t mailbox);
    Fault introduce(AgentRoute& route);
    void await(std::unique_lock<std::mutex>& lock, std::size_t which);
    void await_ended(std::unique_lock<std::mutex>& lock);
    void end(std::size_t which, Status status);

    std::mutex mutex_;
    shm::ArenaBlock piece_;
    OutboxMemory* memory_ = nullptr;
    std::map<std::pair<std::uint64_t, std::uint64_t>, AgentRoute> routes_;  // by token and mailbox; entries stay
    shm::Doorbell introduced_;                                              // rung when a route leaves Introducing
    std::atomic<std::uint32_t> free_{(1u << kMessageSlots) - 1};
    shm::Doorbell freed_;
    std::atomic<std::uint32_t> kept_{0};
    std::array<std::vector<ReplySegment>, kMessageSlots> segments_;
    std::mutex tracked_mutex_;
    std::vector<SentMessage> tracked_;     // oldest first
    std::atomic<std::uint32_t> ended_{0};  // of those that were in it
    std::atomic<std::uint32_t> tracked_count_{0};
};

}  // namespace osc::net
