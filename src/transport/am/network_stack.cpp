#include "transport/am/network_stack.h"

#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "base/random.h"
#include "transport/shm/arena.h"

namespace osc::am {

NetworkStack& NetworkStack::mine() {
    static auto* stack = new NetworkStack;  // never destroyed: its thread may run until the process's last instruction
    return *stack;
}

bool NetworkStack::open(const fabric::Wishes& wishes, int timeout_ms, std::string& why) {
    static std::mutex opening;
    const std::lock_guard lock(opening);
    if (is_open()) {
        if (process_ == ::getpid()) return true;
        why = "a child made by fork cannot use its parent's network";
        return false;
    }
    std::unique_ptr<fabric::Endpoint> opened(fabric::open(wishes, why));
    if (opened == nullptr || !open(std::move(opened), timeout_ms, Mode::Thread, why)) return false;
    if (this == &mine()) {
        shm::set_wait_network([] { mine().engine.poll(); });
        // The thread must end before libfabric does. Until then peers may need its answers.
        std::atexit([] { mine().stop(); });
    }
    return true;
}

bool NetworkStack::open(std::unique_ptr<fabric::Endpoint> endpoint, int timeout_ms, Mode mode, std::string& why) {
    endpoint_ = std::move(endpoint);
    address_ = {base::random64(), base::random64(), {}, {}};
    connections.open(*endpoint_, std::int64_t{timeout_ms} * 1000000, address_);
    sender.open(*endpoint_, address_.token);
    receiver_.open(*endpoint_, address_.secret);
    rdma.open(*endpoint_, address_.token);
    process_ = ::getpid();
    if (engine.start(mode, why)) return true;
    endpoint_.reset();
    return false;
}

void NetworkStack::close() {
    stop();
    receiver_.close();
    endpoint_.reset();
}

// A child made by fork has no network thread to end.
void NetworkStack::stop() {
    if (!is_open() || process_ != ::getpid()) return;
    engine.stop();
    if (this == &mine()) shm::set_wait_network(nullptr);
}

int NetworkStack::poll() {
    const int events = receiver_.poll();
    idle_polls_ = events > 0 ? 0 : idle_polls_ + 1;
    if (idle_polls_ >= kIdlePolls) {
        idle_polls_ = 0;
        sender.send_piggybacks();
    }
    sender.retry_unsent();
    messenger.resume_waiting();
    return events;
}

void NetworkStack::check_peers() {
    connections.drain_lifeline();
    messenger.look_for_dead();
}

}  // namespace osc::am
