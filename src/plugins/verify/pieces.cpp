// Arithmetic of rows of blocks.
// Build: osc_verify_core
#include "plugins/verify/pieces.h"

#include <algorithm>
#include <numeric>

namespace osc::check {
namespace {

// Blocks that one comparison looks at. A pair of rows that needs more may be taken for disjoint.
constexpr std::int64_t kMostSteps = 65536;

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
    return a / b - (a % b < 0 ? 1 : 0);
}

// The first block of `row` that may end after `lo`.
std::int64_t first_block(const Piece& row, std::int64_t lo) {
    if (row.count == 1) return 0;
    return std::max<std::int64_t>(0, floor_div(lo - row.bytes - row.lo, row.stride) + 1);
}

// Visits pairs of blocks that share bytes, in ascending order of the blocks of `a`, until visit() returns true. Looks
// at most at `steps` blocks of `a`.
template <class Visit>
bool visit_pairs(const Piece& a, const Piece& b, std::int64_t steps, Visit&& visit) {
    if (a.lo >= b.hi() || b.lo >= a.hi()) return false;
    for (std::int64_t i = first_block(a, b.lo); i < a.count && steps > 0; ++i, --steps) {
        const std::int64_t lo = a.lo + i * a.stride;
        const std::int64_t hi = lo + a.bytes;
        if (lo >= b.hi()) return false;
        for (std::int64_t j = first_block(b, lo); j < b.count; ++j) {
            const std::int64_t other = b.lo + j * b.stride;
            if (other >= hi) break;
            if (lo < other + b.bytes && visit(lo, other)) return true;
        }
    }
    return false;
}

// After the block of `a` that lies across the begin of `b`, the blocks of `a` lie to those of `b` in a pattern that
// repeats after as many blocks of `a`.
std::int64_t period(const Piece& a, const Piece& b) {
    if (a.count == 1 || b.count == 1) return kMostSteps;
    return std::min(b.stride / std::gcd(a.stride, b.stride) + 1, kMostSteps);
}

template <class Visit>
bool visit_fewer(const Piece& a, const Piece& b, bool repeats, Bytes& where, Visit&& visit) {
    const Piece& few = a.count <= b.count ? a : b;
    const Piece& many = a.count <= b.count ? b : a;
    return visit_pairs(few, many, repeats ? period(few, many) : kMostSteps, [&](std::int64_t one, std::int64_t other) {
        where = {std::max(one, other), std::min(one + few.bytes, other + many.bytes)};
        return visit(one - other);
    });
}

}  // namespace

bool extend(Piece& row, const Piece& next, std::int64_t unit) {
    if (next.count != 1) return false;
    if (row.count == 1 && next.lo == row.hi()) {
        row.bytes += next.bytes;
        return true;
    }
    if (next.bytes != row.bytes || next.lo <= row.hi()) return false;
    const std::int64_t stride = next.lo - (row.lo + (row.count - 1) * row.stride);
    if (stride % unit != 0 || (row.count > 1 && stride != row.stride)) return false;
    row.stride = stride;
    ++row.count;
    return true;
}

std::vector<Piece> pieces_of(std::span<const Bytes> ranges, std::int64_t unit) {
    std::vector<Piece> pieces;
    for (const Bytes& range : ranges) {
        const Piece next{range.lo, range.hi - range.lo, 0, 1};
        if (pieces.empty() || !extend(pieces.back(), next, unit)) pieces.push_back(next);
    }
    return pieces;
}

bool overlap(const Piece& a, const Piece& b, Bytes& where) {
    return visit_fewer(a, b, true, where, [](std::int64_t) { return true; });
}

bool crosses(const Piece& a, const Piece& b, std::int64_t size, Bytes& where) {
    const bool even = (a.count == 1 || a.stride % size == 0) && (b.count == 1 || b.stride % size == 0);
    if (even && (a.lo - b.lo) % size == 0) return false;
    return visit_fewer(a, b, even, where, [&](std::int64_t distance) { return distance % size != 0; });
}

bool contains(const Piece& outer, const Piece& inner) {
    if (outer == inner) return true;
    if (inner.lo < outer.lo || inner.hi() > outer.hi()) return false;
    if (outer.count == 1) return true;
    if (inner.count > 1 && inner.stride % outer.stride != 0) return false;
    return (inner.lo - outer.lo) % outer.stride + inner.bytes <= outer.bytes;
}

}  // namespace osc::check
