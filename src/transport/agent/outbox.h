// The sending side of the queue to agents: this process's message slots, in its own arena, and its connections to the
// agents it has met. Made on first use; a fixed number of slots serves all targets.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "agent/mailbox.h"
#include "diag/fault.h"
#include "op/kernels.h"

namespace osc::agent {

/// A sender's way to one agent, valid for the process's life.
struct Connection {
    Mailbox* box = nullptr;
    std::uint32_t card = 0;
    std::shared_ptr<shm::PeerArena> arena;  // keeps the mailbox mapped
};

/// Where a piece of an answer goes.
struct Landing {
    void* to;
    std::size_t bytes;
};

/// What the operations of one window have under way that nobody waits for yet, and the first fault of those that were
/// answered. Changed by the Outbox, in any thread. settle() must be the last that happens to it.
struct Pending {
    /// Messages that are not known to be answered, and one more while there is a fault to tell.
    std::atomic<std::uint32_t>& unsettled;
    Fault fault = Fault::None;
    std::string text;  // of the fault
};

/// A message that was sent and left.
struct Left {
    std::uint32_t slot;
    std::uint32_t rank;  // of the target
    const Connection* connection;
    Pending* owner;
    bool awaited = false;  // a thread waits for the answer, without the lock
};

inline constexpr std::uint32_t kEveryRank = ~std::uint32_t{0};
inline constexpr std::uint32_t kNoRank = kEveryRank - 1;

/// Thread-safe, except that a claimed slot belongs to the thread that claimed it.
class Outbox {
  public:
    /// The outbox of this process.
    static Outbox& mine();

    Outbox() { left_.reserve(kSlots); }
    ~Outbox();
    Outbox(const Outbox&) = delete;
    Outbox& operator=(const Outbox&) = delete;

    /// The connection to the agent whose mailbox lies at `mailbox` of `arena`; introduces this process on first use.
    /// Fault::Dead if the agent has ended, Fault::NoMem if one of the two cannot map the other.
    Fault connect(std::shared_ptr<shm::PeerArena> arena, std::uint64_t mailbox, Connection*& connection);

    static constexpr std::uint32_t kNone = ~std::uint32_t{0};
    /// A free slot's number, or kNone.
    std::uint32_t try_claim();
    /// The same, waiting until another thread gives one back. Only for a thread that holds none.
    std::uint32_t claim();
    void give_back(std::uint32_t number);

    /// Takes over a message that was sent, with its slot.
    void leave(const Left& message);
    /// Gives back the slots of messages that were left and are answered; if none is, waits for the oldest. False if
    /// none was left.
    bool reap();
    /// Waits for what was left to `owner` for one target or all, or for nothing (kNoRank), and returns the fault that
    /// is to be told, once.
    Fault settle(Pending& owner, std::uint32_t rank);

    Slot& slot(std::uint32_t number) { return memory_->slots[number]; }
    /// Where the answer in a claimed slot goes, in order; its owner fills and clears it.
    std::vector<Landing>& landings(std::uint32_t number) { return landings_[number]; }

  private:
    Fault introduce(Connection& connection);
    void await(std::unique_lock<std::mutex>& lock, std::size_t which);
    void await_ended(std::unique_lock<std::mutex>& lock);
    void end(std::size_t which, bool answered);

    std::mutex mutex_;
    shm::Piece piece_;
    OutboxMemory* memory_ = nullptr;
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::unique_ptr<Connection>> connections_;  // token, mailbox
    std::atomic<std::uint32_t> free_{(1u << kSlots) - 1};
    shm::Doorbell freed_;
    std::array<std::vector<Landing>, kSlots> landings_;
    std::mutex left_mutex_;
    std::vector<Left> left_;               // oldest first
    std::atomic<std::uint32_t> ended_{0};  // of those that were in it
    std::atomic<std::uint32_t> left_count_{0};
};

}  // namespace osc::agent
