// The processes on other nodes that this process has exchanged messages with, and whether they live.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "progress/lifeline.h"
#include "transport/am/channels/fabric_lane.h"
#include "transport/am/process_table.h"

namespace osc::am {

struct Connection {
    std::uint64_t token = 0;
    std::uint64_t secret = 0;
    fabric::PeerId peer = 0;
    progress::SocketAddress lifeline;
    FabricLane lane;

    std::atomic<bool> dead{false};        // final
    std::atomic<std::int64_t> heard{0};   // when the last message came, ns
    std::atomic<std::int64_t> asked{0};   // when a ping went out that no message has followed, ns; 0: none
    std::atomic<std::uint32_t> pongs{0};  // that the peer has sent
    std::atomic<std::uint32_t> pings{0};  // the same
    std::uint32_t expected_pings = 0;     // see NetworkStack::ask_sleeper()
    std::mutex probing;                   // guards probe
    progress::Probe probe;
    std::atomic<std::int64_t> accessed{0};   // when the last direct access began, ns
    std::atomic<std::int64_t> announced{0};  // when the peer was last sent a ProgressHint, ns
};

/// Thread-safe. A connection lasts until this object ends.
class Connections {
  public:
    /// `timeout_ns`: how long a peer may leave a ping unanswered. Fills the rest of this process's address.
    void open(fabric::Endpoint& endpoint, std::int64_t timeout_ns, ProcessAddress& mine);

    /// The connection to a process; null if the provider refuses the address.
    Connection* connect(const ProcessAddress& address);
    /// Accepts messages of the processes in a table from now on; or, except from those that are connected, no longer.
    void admit(const ProcessTable& table);
    void dismiss(const ProcessTable& table);
    /// The sender of a message, by its token; null for a process that is not connected and in no table.
    Connection* find(std::uint64_t token);

    /// How many there are.
    std::size_t count();

    enum class Sign { Alive, Silent, Dead };
    /// Marks a peer dead that does not answer. Silent: the caller has to send a ping.
    Sign check(Connection& peer) const;
    /// A message came from the peer.
    static void heard_from(Connection& peer);
    /// Closes connections to this process's lifeline.
    void drain_lifeline() const { lifeline_.drain(); }

  private:
    Connection* connect_locked(const ProcessAddress& address);

    fabric::Endpoint* endpoint_ = nullptr;
    progress::Lifeline lifeline_;
    std::int64_t timeout_ns_ = 0;
    std::mutex mutex_;
    std::unordered_map<std::uint64_t, std::unique_ptr<Connection>> connections_;  // by token
    std::vector<const ProcessTable*> tables_;
};

}  // namespace osc::am
