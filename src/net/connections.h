// The processes on other nodes that this process has exchanged messages with, and whether they live.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <vector>

#include "net/process_table.h"
#include "net/status.h"
#include "progress/lifeline.h"

namespace osc::net {

struct Job;
struct Message;

/// What the fabric channel keeps for one peer.
struct FabricLane {
    // Fixes the order of the messages to the peer: a thread that takes the piggyback sends it before it unlocks this.
    std::mutex sending;
    Message* piggyback = nullptr;  // waits for another message; under the sender's mutex
    std::deque<Message*> unsent;   // the provider had no room, in order; under the sender's mutex
    std::uint64_t sent = 0;        // frames; under `sending`
    // Under the drive lock.
    std::uint64_t received = 0;  // frames; they arrive in the order of `sent`
};

struct Connection {
    std::uint64_t token = 0;
    std::uint64_t secret = 0;
    fabric::PeerId peer = 0;
    progress::SocketAddress lifeline;
    std::atomic<bool> lacks_address{false};  // the peer may: the next message takes this process's with it
    FabricLane lane;

    /// Done, or why no operation reaches the peer any more; final.
    std::atomic<Status> end{Status::Done};
    bool ended() const { return end.load(std::memory_order_acquire) != Status::Done; }
    std::atomic<bool> failed{false};       // the provider has failed a message or access; final
    std::atomic<std::int64_t> heard{0};    // when the last message came, ns
    std::atomic<std::int64_t> asked{0};    // when a ping went out that no message has followed, ns; 0: none
    std::atomic<std::uint32_t> pongs{0};   // that the peer has sent
    std::atomic<std::uint32_t> pings{0};   // the same
    std::atomic<std::uint32_t> sleeps{0};  // of the peer's network thread, at its latest pong
    std::uint32_t expected_pings = 0;      // see NetworkStack::ask_sleeper()
    std::mutex watching;                   // guards watch
    progress::Watch watch;
    std::atomic<std::int64_t> accessed{0};   // when the last direct access began, ns
    std::atomic<std::int64_t> announced{0};  // when the peer was last sent a ProgressHint, ns
};

/// Thread-safe. A connection lasts until this object ends.
class Connections {
  public:
    /// `ipv4`: this host's address for the lifeline (network order; 0: none). `timeout_ns`: how long a peer's host may
    /// be silent; without lifeline, the peer. Fills the rest of this process's address.
    void open(fabric::Endpoint& endpoint, std::uint32_t ipv4, std::int64_t timeout_ns, ProcessAddress& mine);

    /// The connection to a process; null if the provider refuses the address. `lacks_address`: unless it has sent
    /// something, the next message to it takes this process's address with it.
    Connection* connect(const ProcessAddress& address, bool lacks_address = false);
    /// Accepts messages of the processes of a team from now on; or, except from those that are connected, no longer.
    void admit(Job& job);
    void dismiss(Job& job);
    /// The connection to a process, by its token; null if there is none.
    Connection* find(std::uint64_t token, bool lacks_address = false);
    /// The same for the sender of a message; connects to one that has its address in a table.
    Connection* sender(std::uint64_t token);
    /// The sender of a Hello; null if it is in no team of this process.
    Connection* meet(std::uint64_t token, const std::byte* body, std::size_t bytes);
    /// Copies the others of the part of a rank of a team; false if this node does not know them.
    bool copy_others(std::uint64_t team, std::uint32_t rank, std::vector<std::byte>& others);

    /// How many there are.
    std::size_t count();

    enum class Sign { Alive, Silent, Ended };
    /// Looks, without waiting, whether a peer lives; ends its connection if not, or if that has failed. Silent: the
    /// caller has to send a ping.
    Sign check(Connection& peer);
    /// A message came from the peer.
    static void heard_from(Connection& peer);
    /// The provider has failed a message or access to the peer, or refused it. Only the peer's lifeline tells whether
    /// it is dead; nothing is sent to it until then.
    void fail(Connection& peer);
    /// No further operation reaches the peer.
    void end(Connection& peer, Status why);

    /// Whether connections have failed or ended that settled() was not called for.
    bool unsettled() const { return unsettled_.load(std::memory_order_seq_cst) > 0; }
    /// The peers in doubt: asked without an answer, failed, or ended. Forgets those that have been heard from.
    std::vector<Connection*> in_doubt();
    /// The end of the connection has been reported.
    void settled(Connection& peer);
    /// From now on the time-out alone decides, as for peers without lifeline.
    void ignore_lifelines() { ignores_lifelines_.store(true, std::memory_order_relaxed); }
    /// Answers the observers of this process's lifeline. One thread at a time.
    void serve_lifeline();

  private:
    Connection* connect_locked(const ProcessAddress& address, bool lacks_address);
    Connection* find_locked(std::uint64_t token, bool lacks_address = false);
    bool knows_locked(std::uint64_t token) const;
    void doubt(Connection& peer);

    fabric::Endpoint* endpoint_ = nullptr;
    progress::Lifeline lifeline_;
    std::uint64_t token_ = 0;  // of this process
    std::int64_t timeout_ns_ = 0;
    std::mutex mutex_;
    std::unordered_map<std::uint64_t, std::unique_ptr<Connection>> connections_;  // by token
    std::set<std::uint64_t> refused_;  // tokens of processes whose address the provider has refused
    std::vector<Job*> jobs_;
    std::vector<Connection*> in_doubt_;
    std::atomic<int> unsettled_{0};
    std::atomic<bool> ignores_lifelines_{false};
};

}  // namespace osc::net
