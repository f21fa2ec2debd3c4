// The way of one window's operations from this process to one target.
#pragma once

#include <cstdint>

#include "net/network_stack.h"
#include "shm/activity.h"

namespace osc::net {

struct StreamRoute {
    NetworkStack& network;
    Connection& to;
    std::uint64_t window;
    std::uint32_t me;
    std::uint32_t target;

    /// What a thread waits for while it waits for the target.
    shm::WaitScope scope() const { return {shm::WaitKind::Operations, window, me, target}; }
};

}  // namespace osc::net
