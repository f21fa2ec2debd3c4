// Updates by load and store.
#include "local/direct.h"

namespace osc::shm {

void Direct::update(const Update& how, std::int64_t disp, const void* origin, void* result, std::size_t count) {
    if (fault_ != Fault::None) return;
    fault_ = for_each_locked(stripes_, disp, how.width, count, [&](std::size_t first, std::size_t n) {
        const std::size_t skip = first * how.width;
        std::byte* target = at(disp) + skip;
        if (result != nullptr) how.copy(static_cast<std::byte*>(result) + skip, target, n);
        if (how.op != Op::NoOp) how.apply(target, static_cast<const std::byte*>(origin) + skip, n);
    });
}

void Direct::compare_and_swap(const Update& how, std::int64_t disp, const void* origin, const void* compare,
                              void* result) {
    if (fault_ != Fault::None) return;
    fault_ = for_each_locked(stripes_, disp, how.width, 1, [&](std::size_t, std::size_t) {
        std::byte* target = at(disp);
        const bool same = op::equal(how.basic, target, compare);
        how.copy(result, target, 1);
        if (same) how.copy(target, origin, 1);
    });
}

}  // namespace osc::shm
