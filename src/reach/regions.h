// The way to a dynamic window. Each piece of an operation goes to the attached region that contains it: by load and
// store where the region is mapped here, as to private memory where it is not. Displacements are addresses.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "reach/private.h"
#include "transport/shm/regions.h"

namespace osc::reach {

class Regions final : public LocalReach {
  public:
    /// Of process `me`.
    Regions(std::uint32_t me, sync::Liveness& liveness, Private& unmapped)
        : me_(me), liveness_(liveness), unmapped_(unmapped) {}

    /// The view of a target's regions, for Peer::regions. Lives as long as this object.
    shm::RegionView* view() { return views_.emplace_back(std::make_unique<shm::RegionView>()).get(); }

    std::byte* find_mapped(const Peer& target, std::uint64_t disp, std::uint64_t bytes) const override;
    bool find_unmapped(const Peer& target, std::int64_t disp, std::uint64_t bytes, Unmapped& place) const override;

  protected:
    Outcome execute(Peer& target, const op::Call& call, const Update& what, std::int64_t start) override;
    Fault find_start(Peer& target, const op::Call& call, std::int64_t& start, bool& nothing) override;

  private:
    std::optional<std::vector<shm::Region>> read(std::uint32_t rank, std::uint64_t offset, std::uint64_t count) const;

    const std::uint32_t me_;
    sync::Liveness& liveness_;
    Private& unmapped_;
    std::vector<std::unique_ptr<shm::RegionView>> views_;
};

class RegionsTransport final : public Transport {
  public:
    /// A part of the target's addresses, and the place at which its first byte is mapped here; null: not mapped.
    struct Mapped {
        std::byte* here = nullptr;
        std::uint64_t first = 0;
        std::uint64_t end = 0;
    };
    /// `locate` returns the part of a region that is mapped here. `unmapped` is the transport to any address of the
    /// target.
    RegionsTransport(std::shared_ptr<const shm::AttachedRegions> regions, shm::Stripes stripes,
                     std::function<Mapped(const shm::Region&)> locate, Transport& unmapped)
        : regions_(std::move(regions)), stripes_(stripes), locate_(std::move(locate)), unmapped_(unmapped) {}

    void put(std::int64_t disp, const void* from, std::size_t bytes) override;
    void get(std::int64_t disp, void* to, std::size_t bytes) override;
    void update(const Update& how, std::int64_t disp, const void* origin, void* result, std::size_t count) override;
    void compare_and_swap(const Update& how, std::int64_t disp, const void* origin, const void* compare,
                          void* result) override;
    Fault finish() override;

  private:
    /// Calls f(transport, disp, bytes) for each part of [disp, disp + bytes) that lies in one region.
    template <class F>
    void split(std::int64_t disp, std::size_t bytes, F&& f);
    template <class F>
    void by_load_and_store(const Mapped& mapped, std::int64_t disp, std::size_t bytes, F&& f);

    std::shared_ptr<const shm::AttachedRegions> regions_;
    shm::Stripes stripes_;
    std::function<Mapped(const shm::Region&)> locate_;
    Transport& unmapped_;
    Fault fault_ = Fault::None;
};

}  // namespace osc::reach
