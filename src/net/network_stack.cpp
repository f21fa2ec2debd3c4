#include "net/network_stack.h"

#include <unistd.h>

#include <atomic>
#include <utility>

#include "base/clock.h"
#include "base/host_address.h"
#include "shm/arena.h"

namespace osc::net {

namespace {

// Never destroyed: its thread may run until the process's last instruction.
std::atomic<NetworkStack*>& current() {
    static auto* stack = new std::atomic<NetworkStack*>(new NetworkStack);
    return *stack;
}

}  // namespace

NetworkStack& NetworkStack::mine() {
    return *current().load(std::memory_order_acquire);
}

// The old object stays: a thread that polls may still look at it.
void NetworkStack::renew() {
    mine().close();
    current().store(new NetworkStack, std::memory_order_release);
}

bool NetworkStack::open(const fabric::Wishes& wishes, int timeout_ms, const ProcessName& name, std::string& why) {
    static std::mutex opening;
    const std::lock_guard lock(opening);
    if (is_open()) {
        if (process_ == ::getpid()) return true;
        why = "a child made by fork cannot use its parent's network";
        return false;
    }
    fabric::Wishes all = wishes;
    // The thread must end before libfabric does. Until then peers may need its answers.
    if (this == &mine()) all.before_end = [] { mine().stop(); };
    std::unique_ptr<fabric::Endpoint> opened(fabric::open(all, why));
    const bool has_none = opened != nullptr && opened->ipv4() == 0;
    std::uint32_t ipv4 = has_none ? base::host_ipv4(wishes.interface, wishes.loopback) : 0;
    if (has_none && ipv4 == 0) ipv4 = base::host_ipv4("", wishes.loopback);  // wishes.interface may be an adapter
    if (opened == nullptr || !open(std::move(opened), timeout_ms, Mode::Thread, why, ipv4, name)) return false;
    if (this == &mine()) shm::set_wait_network([] { mine().engine.poll(); });
    return true;
}

bool NetworkStack::open(std::unique_ptr<fabric::Endpoint> endpoint, int timeout_ms, Mode mode, std::string& why,
                        std::uint32_t ipv4, const ProcessName& name) {
    endpoint_ = std::move(endpoint);
    address_ = {name, {}, {}};
    connections.open(*endpoint_, ipv4 != 0 ? ipv4 : endpoint_->ipv4(), std::int64_t{timeout_ms} * 1000000, address_);
    sender.open(*endpoint_, address_);
    messenger.open(name.secret, largest_body());
    rdma.open(*endpoint_, name.token);
    process_ = ::getpid();
    if (engine.start(mode, why)) return true;
    endpoint_.reset();
    return false;
}

void NetworkStack::close() {
    stop();
    const auto lock = engine.seize();
    endpoint_.reset();
}

// A child made by fork has no network thread to end.
void NetworkStack::stop() {
    if (!is_open() || process_ != ::getpid()) return;
    engine.stop();
    if (this == &mine()) shm::set_wait_network(nullptr);
}

int NetworkStack::poll() {
    if (endpoint_ == nullptr) return 0;  // renew()
    const int events = endpoint_->poll(messenger);
    idle_polls_ = events > 0 ? 0 : idle_polls_ + 1;
    piggyback_polls_ = sender.has_piggybacks() ? piggyback_polls_ + 1 : 0;
    if (idle_polls_ >= kIdlePolls || piggyback_polls_ >= kBusyPolls) {
        idle_polls_ = piggyback_polls_ = 0;
        sender.send_piggybacks();
    }
    if (sender.has_unsent()) sender.retry_unsent();
    messenger.resume_waiting();
    if (connections.unsettled()) settle();
    return events;
}

// Connections that have failed or ended. A look costs a system call.
void NetworkStack::settle() {
    constexpr std::int64_t kBetween = 1000000;  // ns
    const std::int64_t now = now_ns();
    if (now - looked_ < kBetween) return;
    looked_ = now;
    messenger.look_for_ends();
    rdma.settle();
}

void NetworkStack::check_peers() {
    connections.serve_lifeline();
    messenger.look_for_dead();
    rdma.settle();
}

}  // namespace osc::net
