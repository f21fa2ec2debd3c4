// What the fabric channel keeps for one peer.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>

namespace osc::net {

struct Message;

struct FabricLane {
    // Fixes the order of the messages to the peer: a thread that takes the piggyback sends it before it unlocks this.
    std::mutex sending;
    Message* piggyback = nullptr;  // waits for another message; under the sender's mutex
    std::deque<Message*> unsent;   // the provider had no room, in order; under the sender's mutex
    std::uint64_t sent = 0;        // frames; under `sending`
    // Under the drive lock.
    std::uint64_t received = 0;  // frames; they arrive in the order of `sent`
};

}  // namespace osc::net
