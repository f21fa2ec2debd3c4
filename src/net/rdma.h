// Direct accesses to the memory of other processes: the provider's writes, reads and atomics.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "net/messenger.h"

namespace osc::net {

/// One access. Its memory is the owner's until `ended`.
struct Transfer {
    fabric::Operation operation;  // first: the provider names the transfer by its address
    class Rdma* rdma = nullptr;
    Connection* connection = nullptr;
    void* owner = nullptr;
    void (*ended)(Transfer&, Status) = nullptr;  // called once, under the drive lock or by the posting thread
};

/// Thread-safe. A transfer that has begun is the provider's until it has ended, even if the peer is dead. A transfer
/// that the provider has failed ends when it is settled whether the peer is dead.
class Rdma {
  public:
    Rdma(Messenger& messenger, FabricSender& sender, progress::ProgressEngine& engine, Counts& counts)
        : messenger_(messenger), sender_(sender), engine_(engine), counts_(counts) {}
    /// `token`: of this process.
    void open(fabric::Endpoint& endpoint, std::uint64_t token);

    /// False, with nothing begun: the provider has no room now.
    [[nodiscard]] bool write(Transfer& transfer, const void* from, std::size_t bytes, std::uint64_t address,
                             std::uint64_t key);
    [[nodiscard]] bool read(Transfer& transfer, void* to, std::size_t bytes, std::uint64_t address, std::uint64_t key);
    [[nodiscard]] bool update(Transfer& transfer, fabric::AtomicRow& row, std::uint64_t address, std::uint64_t key);
    /// Waits for room. Without locks, like ProgressEngine::wait().
    void update_when_room(Transfer& transfer, fabric::AtomicRow& row, std::uint64_t address, std::uint64_t key);

    /// Ends the failed transfers to peers whose connections have ended. Under the drive lock.
    void settle();
    /// Whether any are in flight.
    bool active() const { return in_flight_.load(std::memory_order_relaxed) > 0; }

  private:
    template <class Post>
    bool begin(Transfer& transfer, Post&& post);
    template <class Post>
    bool access(Transfer& transfer, bool by_adapter, std::size_t bytes, std::atomic<std::uint64_t>& counter,
                Post&& post);
    void announce(Connection& to, std::size_t bytes);
    static void ended(fabric::Operation& operation, int error);

    fabric::Endpoint* endpoint_ = nullptr;
    Messenger& messenger_;
    FabricSender& sender_;
    progress::ProgressEngine& engine_;
    Counts& counts_;
    std::uint64_t token_ = 0;
    std::atomic<std::uint32_t> begun_{0};  // of all time: every eighth polls
    std::atomic<int> in_flight_{0};
    std::vector<Transfer*> failed_;  // under the drive lock
};

}  // namespace osc::net
