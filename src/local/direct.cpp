// Updates by load and store.
#include "local/direct.h"

namespace osc::shm {

void Direct::update(const Update& how, std::int64_t disp, const void* origin, void* result, std::size_t count) {
    if (fault_ != Fault::None) return;
    fault_ = for_each_locked(stripes_, disp, how.width, count, [&](std::size_t first, std::size_t n) {
        const std::size_t skip = first * how.width;
        change(how, at(disp) + skip, origin != nullptr ? static_cast<const std::byte*>(origin) + skip : nullptr,
               result != nullptr ? static_cast<std::byte*>(result) + skip : nullptr, n);
    });
}

}  // namespace osc::shm
