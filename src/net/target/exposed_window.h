// A window's part in this process, as the target's side serves it to other processes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fabric/endpoint.h"
#include "shm/control.h"
#include "shm/regions.h"
#include "sync/lock.h"
#include "sync/notify.h"

namespace osc::net {

class Caches;
class Leases;
class Neighbours;

/// All that it points at outlives the registration with AgentService or TargetService.
struct ExposedWindow {
    std::byte* base = nullptr;            // displacement 0; null in dynamic windows
    std::uint64_t size = 0;               // bytes
    shm::RegionTable* regions = nullptr;  // dynamic windows: the attached memory
    const shm::ControlTable* controls = nullptr;
    std::uint32_t rank = 0;       // of the owner in the window's group
    std::uint32_t processes = 0;  // of the window
    sync::Liveness* liveness = nullptr;
    stats::Counters* stats = nullptr;  // of the owner, or null

    // For processes of other nodes only.
    std::uint64_t id = 0;
    std::uint64_t unit = 1;                 // bytes
    const std::uint64_t* tokens = nullptr;  // of all processes, by rank
    Leases* leases = nullptr;               // dynamic windows: what other processes know of the regions
    Caches* caches = nullptr;               // dynamic windows: what this process knows of others' regions
    const std::atomic<sync::NotifyBoard*>* board = nullptr;  // the notification counters; null: none
    Neighbours* neighbours = nullptr;                        // null: no answers to the hang reporter
    fabric::Exposed exposed;
    fabric::Exposed words;  // of two-level locks, in windows that have them
};

}  // namespace osc::net
