// The fabric channel, sending: one send() that keeps the order of the messages to each peer and hides how a message
// travels. It joins messages for one peer (piggybacks), and keeps what the provider has no room for.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "net/connections.h"
#include "net/wire.h"
#include "progress/engine.h"

namespace osc::net {

/// What the network did, for tests and statistics.
struct Counts {
    std::atomic<std::uint64_t> messages{0};  // sent, of all kinds
    std::atomic<std::uint64_t> requests{0};
    std::atomic<std::uint64_t> writes{0};   // direct
    std::atomic<std::uint64_t> reads{0};    // direct
    std::atomic<std::uint64_t> atomics{0};  // on words of locks, and accumulates by the provider
    std::atomic<std::uint64_t> retries{0};  // posts for which the provider had no room, to be repeated
    // Messages dropped: malformed, with a wrong secret, from an unknown sender, a reply to no request, or a notice for
    // a window that is gone.
    std::atomic<std::uint64_t> strangers{0};
};

inline void count(std::atomic<std::uint64_t>& counter) {
    counter.fetch_add(1, std::memory_order_relaxed);
}

/// A message being filled, or in flight.
struct Message {
    fabric::Operation operation;  // first: the provider names the message by its address
    class FabricSender* sender = nullptr;
    Connection* connection = nullptr;
    std::size_t bytes = 0;      // of the body, so far
    std::byte* data = nullptr;  // Endpoint::largest_message() bytes
    std::byte* body() { return data + sizeof(Frame); }
};

/// What a FabricSender reports failures to. Called by any thread, perhaps with locks of its own.
class SendFailures {
  public:
    /// A message to the peer failed.
    virtual void failed(Connection& peer) = 0;
    /// The provider cannot register the memory of a message.
    virtual void no_memory(Connection& peer) = 0;

  protected:
    ~SendFailures() = default;
};

/// Thread-safe.
class FabricSender {
  public:
    FabricSender(progress::ProgressEngine& engine, SendFailures& failures, Counts& counts)
        : engine_(engine), failures_(failures), counts_(counts) {}
    FabricSender(const FabricSender&) = delete;
    FabricSender& operator=(const FabricSender&) = delete;

    /// `mine`: of this process.
    void open(fabric::Endpoint& endpoint, const ProcessAddress& mine);
    std::uint64_t token() const { return mine_.token; }

    /// A buffer for a message, for send(); with a body.
    Message* claim();
    Message* claim(const void* body, std::size_t bytes);
    void give_back(Message* message);
    /// Sends `message` behind all earlier ones to `to`, and takes it over. Of `frame` the caller sets kind, origin,
    /// window and number. Piggyback: it goes with the next message to the peer, or by send_piggybacks().
    enum class When { Now, Piggyback };
    void send(Connection& to, const Frame& frame, Message* message, When when = When::Now);
    /// Sends a frame without a body, in a message of its own.
    void control(Connection& to, FrameKind kind, std::uint32_t number = 0);
    /// Sends what waits for another message. The engine does it too when nothing happens.
    void send_piggybacks();
    /// Sends what the provider had no room for, if has_unsent(). Under the drive lock.
    void retry_unsent();
    bool has_unsent() const { return stuck_.count.load(std::memory_order_seq_cst) != 0; }
    bool has_piggybacks() const { return with_piggyback_.count.load(std::memory_order_relaxed) != 0; }
    /// Peers that the provider has no room for.
    std::vector<Connection*> stuck_peers();
    /// Whether messages to the peer wait for room.
    bool is_stuck(const Connection& to);

  private:
    /// Under mutex_, except `count`.
    struct PeerSet {
        void add(Connection& peer) { all.push_back(&peer), count = all.size(); }
        void remove(Connection& peer) { std::erase(all, &peer), count = all.size(); }
        std::vector<Connection*> all;
        std::atomic<std::size_t> count{0};
    };

    void make_messages();
    [[gnu::cold]] void introduce(Connection& to);
    Message* join_piggyback(Message* message);
    Message* take_piggyback(Connection& to);
    void send_in_order(Message* message);
    bool post(Message* message);
    static void sent(fabric::Operation& operation, int error);

    fabric::Endpoint* endpoint_ = nullptr;
    progress::ProgressEngine& engine_;
    SendFailures& failures_;
    Counts& counts_;
    ProcessAddress mine_;
    std::mutex mutex_;
    /// Messages, and the memory of their data.
    struct Block {
        std::unique_ptr<Message[]> messages;
        std::unique_ptr<std::byte[]> data;
    };
    std::vector<Block> blocks_;  // all messages
    std::vector<Message*> free_;
    PeerSet with_piggyback_;
    PeerSet stuck_;  // peers with unsent messages: each by itself, or a dead peer would hold up the living
};

}  // namespace osc::net
