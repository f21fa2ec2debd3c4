// What the fabric channel keeps for one peer.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>

#include "transport/am/channels/eager_slots.h"

namespace osc::am {

struct Message;

struct FabricLane {
    // Fixes the order of the messages to the peer: a thread that takes the piggyback sends it before it unlocks this.
    std::mutex sending;
    Message* piggyback = nullptr;                  // waits for another message; under the sender's mutex
    std::deque<Message*> unsent;                   // the provider had no room, in order; under the sender's mutex
    std::uint64_t sent = 0;                        // frames; under `sending`
    EagerSlotsOut slots_out;                       // the peer's slots; used by the posting thread
    std::atomic<EagerSlotsIn*> slots_in{nullptr};  // offered to the peer
    // Under the drive lock.
    bool accepted = false;       // the peer has offered slots
    int ordinary = 0;            // messages received outside slots, up to FabricReceiver::kOfferAfter
    std::uint64_t received = 0;  // frames; they arrive in the order of `sent`
};

}  // namespace osc::am
