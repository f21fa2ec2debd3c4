// The way to a dynamic window. Each piece of an operation goes to the attached region that contains it: by load and
// store where the region is mapped here, as to private memory where it is not. Displacements are addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "reach/private.h"
#include "shm/regions.h"
#include "sync/remote_sync.h"

namespace osc::reach {

class Regions final : public LocalReach {
  public:
    /// Of process `me`.
    Regions(std::uint32_t me, sync::Liveness& liveness, Private& unmapped)
        : me_(me), liveness_(liveness), unmapped_(unmapped) {}

    /// The view of a target's regions, for Target::regions. Lives as long as this object.
    shm::RegionView* view() { return views_.emplace_back(std::make_unique<shm::RegionView>()).get(); }

    bool find(const Target& target, std::int64_t disp, std::uint64_t bytes, Place& place) const override;

  protected:
    Outcome execute(Target& target, const op::Call& call, const Update& what, std::int64_t start) override;
    Fault find_start(Target& /*target*/, const op::Call& call, std::int64_t& start, bool& nothing) override {
        return find_address(call, start, nothing);
    }
    void note_path(const Target& target) const override { unmapped_.note_path(target); }

  private:
    [[gnu::noinline]] bool find_unmapped(const Target& target, std::uint64_t bytes, Place& place) const;
    std::optional<std::vector<shm::Region>> read(std::uint32_t rank, std::uint64_t offset, std::uint64_t count) const;

    const std::uint32_t me_;
    sync::Liveness& liveness_;
    Private& unmapped_;
    std::vector<std::unique_ptr<shm::RegionView>> views_;
};

}  // namespace osc::reach
