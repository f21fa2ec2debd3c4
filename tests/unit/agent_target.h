// Targets whose memory an agent serves, and origins of the same process with an outbox each.
#pragma once

#include <memory>
#include <vector>

#include "net/channels/agent.h"
#include "net/origin/agent_transport.h"
#include "thread_ranks.h"

namespace osc::test {

inline std::shared_ptr<shm::PeerArena> own_arena() {
    return std::make_shared<shm::PeerArena>(shm::Arena::mine().address());
}

/// A window's memory and its control block, as its owner, rank 0, exposes them.
struct ExposedMemory {
    explicit ExposedMemory(std::size_t bytes) : memory(bytes) {
        exposed.base = memory.data();
        exposed.size = bytes;
        exposed.controls = &ranks.controls();
        exposed.liveness = &ranks.lives();
    }
    template <class T>
    T& at(std::size_t i) {
        return reinterpret_cast<T*>(memory.data())[i];
    }
    shm::ControlBlock& block() { return ranks.controls().block(0); }
    /// The same process's dynamic window.
    net::ExposedWindow dynamic(shm::RegionTable& regions) const {
        net::ExposedWindow window = exposed;
        window.base = nullptr;
        window.size = 0;
        window.regions = &regions;
        return window;
    }

    Ranks ranks{1};
    std::vector<std::byte> memory;
    net::ExposedWindow exposed;
};

/// An agent that serves it.
struct AgentTarget : ExposedMemory {
    explicit AgentTarget(std::size_t bytes) : ExposedMemory(bytes) {
        EXPECT_EQ(agent.start({}), Fault::None);
        window = agent.service().add(exposed);
    }

    net::Agent agent;
    std::uint64_t window = 0;
};

struct AgentOrigin {
    explicit AgentOrigin(AgentTarget& to) : target(to) {
        EXPECT_EQ(outbox.connect(own_arena(), to.agent.mailbox(), route), Fault::None);
    }
    net::AgentTransport remote(net::IncompleteOps* incomplete = nullptr) {
        return {outbox, *route, target.window, 0, 0, incomplete};
    }

    AgentTarget& target;
    net::Outbox outbox;
    net::AgentRoute* route = nullptr;
};

}  // namespace osc::test
