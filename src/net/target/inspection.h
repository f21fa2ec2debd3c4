// The question of the hang reporter between nodes: what one process of the receiver's node does, and which processes of
// that node a wait is for. The receiver's network thread answers; nothing waits and nothing changes.
#pragma once

#include <cstdint>
#include <type_traits>

#include "shm/process_view.h"
#include "sync/awaited.h"

namespace osc::net {

/// What a record Inspect carries.
struct InspectQuestion {
    sync::WaitQuestion wait;    // kind None: only what `subject` does
    std::uint32_t subject = 0;  // a rank on the receiver's node
    std::uint32_t zero = 0;
};
static_assert(std::is_trivially_copyable_v<InspectQuestion> && sizeof(InspectQuestion) % 8 == 0);

/// What it returns.
struct Inspection {
    shm::ProcessView view;  // of `subject`; a wait's `since` is its length so far
    sync::Awaited awaited;
};
static_assert(std::is_trivially_copyable_v<Inspection>);

/// The processes of a window on this node. Thread-safe.
class Neighbours {
  public:
    virtual shm::ProcessView process_view(std::uint32_t rank) = 0;

  protected:
    ~Neighbours() = default;
};

}  // namespace osc::net
