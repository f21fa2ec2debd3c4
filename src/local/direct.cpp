// Updates by load and store. The elements of a shape that one stripe covers are gathered, computed and scattered under
// one lock: a kernel works on an array many times faster than on one element after another. Elements that lie far apart
// are updated in place, because the caches would lose them before they are scattered; and under all locks, because few
// of them share one.
// Build: -O3
#include "local/direct.h"

#include <algorithm>

#include "op/copy.h"

namespace osc::shm {

void Direct::update(const Update& how, std::int64_t disp, const void* origin, void* result, std::size_t count) {
    if (fault_ != Fault::None) return;
    fault_ = for_each_locked(stripes_, disp, how.width, count, [&](std::size_t first, std::size_t n) {
        const std::size_t skip = first * how.width;
        change(how, at(disp) + skip, origin != nullptr ? static_cast<const std::byte*>(origin) + skip : nullptr,
               result != nullptr ? static_cast<std::byte*>(result) + skip : nullptr, n);
    });
}

void Direct::update_all(const Update& how, std::int64_t start, op::Cursor target, const std::byte* origin,
                        std::byte* result, std::size_t bytes) {
    if (target.done()) return;
    if (!target.in_list() && target.ahead().blocks == 1)
        return update(how, start + target.offset(), origin, result, bytes / how.width);
    constexpr std::int64_t kChunk = std::int64_t{1} << kStripeShift;
    constexpr std::size_t kLongPiece = 256;  // bytes: copies gain nothing
    constexpr std::size_t kFar = 1024;       // bytes from piece to piece
    constexpr std::size_t kManyFar = 24;     // pieces; fewer take their own locks in less time
    constexpr std::size_t kMostFar = 128;    // pieces under all locks, for some microseconds
    const bool dense = how.width == op::significant_size(how.basic);
    std::byte* const base = at(start);
    std::size_t done = 0;
    const auto update_some = [&](std::size_t n, std::byte* elements) {
        change(how, elements, origin != nullptr ? origin + done : nullptr, result != nullptr ? result + done : nullptr,
               n / how.width);
        done += n;
    };
    const auto update_chunk = [&](std::int64_t chunk) {
        alignas(64) std::byte copies[2048];
        const std::ptrdiff_t end = chunk + kChunk - start;
        do {
            const op::Pieces ahead = target.ahead();
            std::size_t n = 0;
            if (dense && ahead.bytes < kLongPiece && !ahead.overlap())
                n = std::min({target.bytes_within(chunk - start, end), sizeof copies, bytes - done});
            if (n > ahead.bytes) {
                op::Cursor behind = target;
                n = op::pack(behind, base, copies, n);
                update_some(n, copies);
                if (how.op != Op::NoOp) op::unpack(target, base, copies, n);
                target = behind;
                continue;
            }
            const auto first = static_cast<std::uint64_t>(start + target.offset());
            n = count_in_chunk(first, how.width, std::min(ahead.bytes, bytes - done) / how.width) * how.width;
            update_some(n, base + target.offset());
            target.advance(n);
        } while (done < bytes && !target.done() && ((start + target.offset()) & -kChunk) == chunk);
    };
    const auto update_far = [&] {
        for (std::size_t i = 0; i < kMostFar && done < bytes && !target.done(); ++i) {
            const std::size_t n = std::min({target.bytes(), bytes - done, kLongPiece / how.width * how.width});
            update_some(n, base + target.offset());
            target.advance(n);
        }
    };
    const std::size_t piece = target.bytes();
    const bool far = target.spacing() >= kFar && piece < kLongPiece && bytes / piece >= kManyFar;
    while (fault_ == Fault::None && done < bytes && !target.done()) {
        if (far) {
            fault_ = with_stripes(stripes_, (1u << kStripes) - 1, update_far);
            continue;
        }
        const std::int64_t first = start + target.offset();
        fault_ = with_stripe(stripes_, stripes_.target.stripe_of(static_cast<std::uint64_t>(first)),
                             [&] { update_chunk(first & -kChunk); });
    }
}

}  // namespace osc::shm
