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

namespace osc::reach {

class Regions final : public LocalReach {
  public:
    Regions(const Origin& origin, Private& unmapped) : LocalReach(origin), unmapped_(unmapped) {}

    /// The view of a target's regions, for Target::regions. Lives as long as this object.
    shm::RegionView* view() { return views_.emplace_back(std::make_unique<shm::RegionView>()).get(); }

    Outcome simple(Target& target, const op::Simple& what, bool prepared) override;
    void leave_run(Target& target) override { unmapped_.leave_run(target); }

  protected:
    Outcome execute(Target& target, const op::Call& call, const Update& what, std::int64_t start) override;
    stats::DataPath path(const Target& target) const override { return unmapped_.path(target); }

  private:
    std::optional<std::vector<shm::Region>> read(std::uint32_t rank, std::uint64_t offset, std::uint64_t count) const;

    Private& unmapped_;
    std::vector<std::unique_ptr<shm::RegionView>> views_;
};

}  // namespace osc::reach
