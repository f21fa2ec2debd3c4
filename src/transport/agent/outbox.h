// The sending side of the queue to agents: this process's message slots, in its own arena, and its connections to the
// agents it has met. Made on first use; a fixed number of slots serves all targets.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
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

/// Thread-safe, except that a claimed slot belongs to the thread that claimed it.
class Outbox {
  public:
    /// The outbox of this process.
    static Outbox& mine();

    Outbox() = default;
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

    Slot& slot(std::uint32_t number) { return memory_->slots[number]; }
    /// Where the answer in a claimed slot goes, in order; its owner fills and clears it.
    std::vector<Landing>& landings(std::uint32_t number) { return landings_[number]; }

  private:
    Fault introduce(Connection& connection);

    std::mutex mutex_;
    shm::Piece piece_;
    OutboxMemory* memory_ = nullptr;
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::unique_ptr<Connection>> connections_;  // token, mailbox
    std::atomic<std::uint32_t> free_{(1u << kSlots) - 1};
    shm::Doorbell freed_;
    std::array<std::vector<Landing>, kSlots> landings_;
};

}  // namespace osc::agent
