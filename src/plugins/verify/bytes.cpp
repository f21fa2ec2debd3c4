// Walks layouts block by block.
// Build: osc_verify_core
#include "plugins/verify/bytes.h"

#include <algorithm>

#include "op/kernels.h"

namespace osc::check {
namespace {

constexpr std::size_t kMostRanges = 4096;

}  // namespace

bool find_bytes(const op::Layout& layout, std::size_t count, std::int64_t start, std::vector<Bytes>& bytes) {
    op::Bounds bounds;
    Bytes whole;
    if (count == 0 || layout.size() == 0 || !layout.bounds(count, bounds) ||
        __builtin_add_overflow(start, bounds.lo, &whole.lo) || __builtin_add_overflow(start, bounds.hi, &whole.hi))
        return true;
    const op::Shape& shape = layout.data();
    if (shape.one_piece(count) || shape.blocks() > kMostRanges / count) {
        bytes.push_back(whole);
        return shape.one_piece(count);
    }
    std::vector<Bytes> all;
    for (std::size_t turn = 0; turn < count * shape.turns(); ++turn) {
        const auto element = static_cast<std::int64_t>(turn / shape.turns());
        const std::int64_t disp = start + element * shape.extent() + shape.turn_disp(turn % shape.turns());
        for (const op::Run& run : shape.runs())
            for (std::size_t block = 0; block < run.count; ++block) {
                const std::int64_t lo = disp + run.disp + static_cast<std::int64_t>(block) * run.stride;
                all.push_back({lo, lo + static_cast<std::int64_t>(run.bytes)});
            }
    }
    std::sort(all.begin(), all.end(), [](const Bytes& a, const Bytes& b) { return a.lo < b.lo; });
    for (const Bytes& range : all) {
        if (!bytes.empty() && range.lo <= bytes.back().hi)
            bytes.back().hi = std::max(bytes.back().hi, range.hi);
        else
            bytes.push_back(range);
    }
    return true;
}

std::string text_of(const std::vector<Bytes>& bytes) {
    if (bytes.empty()) return "none";
    std::string text = "[" + std::to_string(bytes.front().lo) + ", " + std::to_string(bytes.front().hi) + ")";
    if (bytes.size() > 1) text += " and " + std::to_string(bytes.size() - 1) + " more ranges";
    return text;
}

std::int64_t alignment_of(Basic basic) {
    // A complex number has the alignment of its parts; a pair, whose padding counts, that of its larger value.
    const bool two_parts =
        (basic >= Basic::C16 && basic <= Basic::C128) || (basic >= Basic::FloatInt && basic <= Basic::TwoF64);
    const auto size = static_cast<std::int64_t>(op::element_size(basic));
    return std::max<std::int64_t>(two_parts ? size / 2 : size, 1);
}

}  // namespace osc::check
