// The way to memory that is mapped here: loads and stores.
#pragma once

#include "reach/reach.h"
#include "sync/remote_sync.h"

namespace osc::reach {

class Mapped final : public LocalReach {
  public:
    /// `liveness` of the window's processes, of which this one is `me`.
    Mapped(std::uint32_t me, sync::Liveness& liveness) : me_(me), liveness_(liveness) {}

  protected:
    Outcome execute(Target& target, const op::Call& call, const Update& what, std::int64_t start) override;

  private:
    const std::uint32_t me_;
    sync::Liveness& liveness_;
};

}  // namespace osc::reach
