// The rules of conflicting accesses.
// Build: osc_verify_core
#include "plugins/verify/access.h"

#include <algorithm>

#include "op/kernels.h"
#include "plugins/verify/access_index.h"

namespace osc::check {
namespace {

bool is_integer(Basic basic) {
    return (basic >= Basic::I8 && basic <= Basic::U64) || (basic >= Basic::Bool && basic <= Basic::Char4);
}

// Types that the standard counts as different, but that processors access alike, are one: signed and unsigned integers,
// logicals, bytes and characters of one size.
bool types_agree(Basic a, Basic b) {
    return a == b || (is_integer(a) && is_integer(b) && op::element_size(a) == op::element_size(b));
}

// MPI_Compare_and_swap has no operation; programs combine it with others on one location.
bool any_op(const Access& access) {
    return access.kind == op::OpKind::CompareAndSwap;
}

bool operations_agree(const Access& a, const Access& b, Promises promises) {
    if (a.op == b.op || any_op(a) || any_op(b)) return true;
    return !promises.same_op && (a.op == Op::NoOp || b.op == Op::NoOp);
}

}  // namespace

std::int64_t element_of(const Access& access) {
    const std::size_t size = op::element_size(access.basic);
    return access.atomic() && size > 0 && size == op::significant_size(access.basic) ? static_cast<std::int64_t>(size)
                                                                                     : 1;
}

Clash clash(const Access& a, const Access& b, bool same_origin, Promises promises) {
    if (a.reads() && b.reads()) return Clash::None;
    if (!a.atomic() || !b.atomic()) return Clash::Update;
    if (!types_agree(a.basic, b.basic)) return Clash::Types;
    const bool ordered = same_origin && promises.ordered && !promises.one_op;
    if (!ordered && !operations_agree(a, b, promises)) return Clash::Operations;
    return Clash::Elements;
}

std::int64_t AccessIndex::phase_of(const Entry& entry) {
    const std::int64_t size = element_of(entry.access);
    const auto modulo = [size](std::int64_t byte) { return (byte % size + size) % size; };
    const std::int64_t phase = modulo(entry.lo());
    for (const Piece& piece : entry.pieces)
        if (modulo(piece.lo) != phase || (piece.count > 1 && piece.stride % size != 0)) return -1;
    return phase;
}

bool share(const Entry& a, const Entry& b, Clash clash, Bytes& where) {
    const std::int64_t size = element_of(a.access);
    auto one = a.pieces.begin();
    auto other = b.pieces.begin();
    while (one != a.pieces.end() && other != b.pieces.end()) {
        if (clash == Clash::Elements ? crosses(*one, *other, size, where) : overlap(*one, *other, where)) return true;
        if (one->hi() <= other->hi())
            ++one;
        else
            ++other;
    }
    return false;
}

}  // namespace osc::check
