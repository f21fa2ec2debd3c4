// The network stack of a process: its endpoint and one object of each layer above it, opened and closed together.
//
//   rdma     direct accesses        messenger    requests and replies; the target service
//   directory  processes by their rank
//   sender   the fabric channel     connections  known processes, and whether they live
//   engine   which thread polls all of it
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "base/random.h"
#include "net/directory.h"
#include "net/rdma.h"

namespace osc::net {

class NetworkStack final : progress::Driven {
  public:
    /// The stack of this process, not yet open.
    static NetworkStack& mine();
    /// Closes the stack of this process; mine() is a new one then, not yet open. No window may use the network.
    static void renew();

    NetworkStack() = default;
    ~NetworkStack() { close(); }
    NetworkStack(const NetworkStack&) = delete;
    NetworkStack& operator=(const NetworkStack&) = delete;

    using Mode = progress::ProgressEngine::Mode;
    /// Opens an endpoint and starts the network thread, once; false with the reason in `why`. `timeout_ms`: how long
    /// the host of a silent peer may be silent too.
    bool open(const fabric::Wishes& wishes, int timeout_ms, const ProcessName& name, std::string& why);
    /// The same over an endpoint that the caller has opened. `ipv4`: this host's address for the lifeline (network
    /// order); 0: the endpoint's, if it has one.
    bool open(std::unique_ptr<fabric::Endpoint> endpoint, int timeout_ms, Mode mode, std::string& why,
              std::uint32_t ipv4 = 0, const ProcessName& name = {base::random64(), base::random64()});
    /// Ends the network thread and the endpoint. Nothing of this process may be in flight.
    void close();
    /// Ends the network thread only.
    void stop();
    bool is_open() const { return endpoint_ != nullptr; }
    /// Whether a team has proven that messages wake this process, or has to do without; the network stays open then.
    bool is_proven() const { return proven_.load(std::memory_order_acquire); }
    void set_proven() { proven_.store(true, std::memory_order_release); }

    const ProcessAddress& address() const { return address_; }
    fabric::Endpoint& endpoint() { return *endpoint_; }
    const Counts& counts() const { return counts_; }
    /// The most bytes of a message's body.
    std::size_t largest_body() const { return (endpoint_->largest_message() - sizeof(Frame)) / kAlign * kAlign; }

    /// What messages to a process of another node cost, without rounds of barriers. The first call measures it by pings
    /// to a process, which must know this one: for a millisecond, at most ten. Later calls return the same: nodes are
    /// taken to be alike.
    sync::Costs measure(const ProcessAddress& address);

    /// Whether a message wakes the sleeping network thread of another process: a provider's descriptor may never become
    /// readable, and each message then lies until the longest sleep ends. Both processes call one of these; a process
    /// that was asked may ask in turn. The first pings and measures the answers, the other one leaves all polls to its
    /// network thread meanwhile. They give up after some seconds.
    bool ask_sleeper(Connection& to);
    void sleep_for(Connection& from);

  private:
    std::unique_ptr<fabric::Endpoint> endpoint_;  // the layers' destructors use it
    Counts counts_;

  public:
    progress::ProgressEngine engine{*this};
    Connections connections;
    FabricSender sender{engine, messenger, counts_};
    Messenger messenger{connections, sender, engine, counts_};
    Directory directory{connections, messenger, sender};
    Rdma rdma{messenger, sender, engine, counts_};

  private:
    bool await_pings(Connection& from, std::uint32_t count, bool polls);
    void settle();
    std::int64_t round_trip(Connection& to, std::size_t bytes, std::int64_t until);
    int poll() override;
    int sleep(int milliseconds) override {
        sender.send_piggybacks();
        return endpoint_->sleep(milliseconds, messenger);
    }
    void check_peers() override;
    bool watch(int timer) override { return endpoint_->watch(timer); }
    bool may_sleep() override {
        sender.send_piggybacks();
        return endpoint_->may_sleep();
    }
    void ignore_events() override { endpoint_->ignore_events(); }
    bool await(int milliseconds) override { return endpoint_->await(milliseconds); }
    bool retries_soon() const override { return messenger.waits() || sender.has_unsent() || connections.unsettled(); }
    void wake() override { endpoint_->wake(); }
    bool has_transfers() const override { return rdma.active(); }
    bool has_unsent() const override { return sender.has_unsent() || sender.has_piggybacks(); }

    ProcessAddress address_;
    // Piggybacks no longer wait for another message after so many polls without an event, or so many of any kind.
    static constexpr int kIdlePolls = 8;
    static constexpr int kBusyPolls = 64;
    // Under the drive lock:
    int idle_polls_ = 0;       // without an event, in a row
    int piggyback_polls_ = 0;  // with piggybacks that wait, in a row
    std::int64_t looked_ = 0;  // when poll() last looked for ends
    int process_ = 0;          // that opened it
    std::atomic<bool> proven_{false};
    sync::Costs costs_;
};

}  // namespace osc::net
