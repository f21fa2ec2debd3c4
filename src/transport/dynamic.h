// The transport to a dynamic window. Each piece of an operation goes to the attached region that contains it: by load
// and store where the region is mapped here, by another transport where it is not. Displacements are addresses.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "transport/direct/direct.h"
#include "transport/shm/regions.h"

namespace osc {

class Dynamic final : public Transport {
  public:
    /// A part of the target's addresses, and the place at which its first byte is mapped here; null: not mapped.
    struct Mapped {
        std::byte* here = nullptr;
        std::uint64_t first = 0;
        std::uint64_t end = 0;
    };
    /// `locate` returns the part of a region that is mapped here. `unmapped` is the transport to any address of the
    /// target.
    Dynamic(std::shared_ptr<const shm::AttachedRegions> regions, shm::Stripes stripes,
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

}  // namespace osc
