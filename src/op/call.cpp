// Checks and executes one operation.
// Build: -O3
#include "op/call.h"

#include <memory>
#include <new>
#include <utility>

#include "op/copy.h"

namespace osc::op {

namespace {

using base::fail;

std::size_t total(const Operand& operand) {
    return operand.layout->size() * operand.count;
}

// Whether elements of the type lie in an array without padding.
bool is_dense(Basic basic) {
    return basic != Basic::None && element_size(basic) == significant_size(basic);
}

// The data of an operand as one array; copied out, and back, only if it is not contiguous. The operand may be made of
// another predefined type than the target.
class Flat {
  public:
    Flat(const Operand& operand, std::size_t bytes, bool fill)
        : operand_(operand),
          width_(element_size(operand.layout->basic())),
          elements_(bytes / significant_size(operand.layout->basic())),
          copy_element_(kernel(Op::Replace, operand.layout->basic())),
          dense_(is_dense(operand.layout->basic())) {
        const Shape& shape = operand.layout->elements();
        if (shape.one_piece(operand.count)) {
            data_ = at(operand.base, shape.first_disp());
            return;
        }
        copy_.reset(new (std::nothrow) std::byte[elements_ * width_]);
        data_ = copy_.get();
        if (fill && data_ != nullptr) {
            if (dense_) {
                Cursor cursor(shape, operand.count);
                pack(cursor, operand.base, data_, elements_ * width_);
            } else {
                walk([&](std::byte* flat, std::byte* spread, std::size_t n) { copy_element_(flat, spread, n); });
            }
        }
    }
    void spread() {
        if (copy_ == nullptr) return;
        if (!dense_)
            return walk([&](std::byte* flat, std::byte* spread, std::size_t n) { copy_element_(spread, flat, n); });
        Cursor cursor(operand_.layout->data(), operand_.count);
        unpack(cursor, operand_.base, data_, elements_ * width_);
    }
    std::byte* data() const { return data_; }

  private:
    template <class F>
    void walk(F&& f) {
        std::byte* flat = copy_.get();
        Cursor cursor(operand_.layout->elements(), operand_.count);
        for (std::size_t done = 0; done < elements_ && !cursor.done();) {
            const std::size_t n = cursor.bytes() / width_;
            f(flat + done * width_, at(operand_.base, cursor.offset()), n);
            done += n;
            cursor.advance(n * width_);
        }
    }

    const Operand operand_;
    std::size_t width_;
    std::size_t elements_;
    Kernel copy_element_;
    bool dense_;
    std::unique_ptr<std::byte[]> copy_;
    std::byte* data_ = nullptr;
};

// Whether one is the other without a sign.
bool differ_in_sign(Basic a, Basic b) {
    const auto is_integer = [](Basic basic) { return basic >= Basic::I8 && basic <= Basic::U64; };
    return is_integer(a) && is_integer(b) && element_size(a) == element_size(b);
}

Fault execute_update(const Call& call, const Update& what, std::int64_t start, Transport& target) {
    const std::size_t bytes = total(call.target);
    const std::size_t elements = bytes / significant_size(what.basic);
    const bool reads = call.op != Op::NoOp;
    const bool returns = call.kind == OpKind::GetAccumulate;
    const Flat origin(reads ? call.origin : Operand{nullptr, 0, call.target.layout}, reads ? bytes : 0, reads);
    Flat result(returns ? call.result : Operand{nullptr, 0, call.target.layout}, returns ? bytes : 0, false);
    if ((reads && origin.data() == nullptr) || (returns && result.data() == nullptr))
        return fail(Fault::NoMem, "no memory for a temporary copy of %zu bytes of a non-contiguous operand",
                    elements * what.width);
    target.update_all(what, start, Cursor(call.target.layout->elements(), call.target.count),
                      reads ? origin.data() : nullptr, returns ? result.data() : nullptr, elements * what.width);
    const Fault fault = target.finish();
    if (fault == Fault::None && returns) result.spread();
    return fault;
}

}  // namespace

Fault check(const Call& call, Update& what) {
    for (const Operand* const operand : {&call.origin, &call.result, &call.target})
        if (Bounds unused; operand->layout != nullptr && !operand->layout->bounds(operand->count, unused))
            return fail(operand == &call.target ? Fault::Range : Fault::Count,
                        "%zu elements of the %s datatype leave the address space", operand->count,
                        operand == &call.target   ? "target"
                        : operand == &call.result ? "result"
                                                  : "origin");
    const std::size_t there = total(call.target);
    if (call.kind == OpKind::Put || call.kind == OpKind::Get) {
        // As Open MPI does, into no elements at all nothing is moved. MPICH moves the data of a put.
        const std::size_t here = total(call.origin);
        const auto [from, into] = call.kind == OpKind::Put ? std::pair(here, there) : std::pair(there, here);
        if (from > into && into != 0)
            return fail(Fault::Truncate, "%zu bytes at the origin, %zu at the target: the data does not fit", here,
                        there);
        return Fault::None;
    }
    const Basic basic = call.target.layout->basic();
    what = {basic, call.op, nullptr, kernel(Op::Replace, basic), element_size(basic), call.compare};
    if (there == 0) return Fault::None;
    if (basic == Basic::None)
        return fail(Fault::Type, "the target datatype of an accumulate must be made of one predefined datatype");
    if (call.kind == OpKind::CompareAndSwap) {
        if (!admits_compare(basic)) return fail(Fault::Type, "MPI_Compare_and_swap does not take %s", name(basic));
        return Fault::None;
    }
    if (call.op == Op::None) return fail(Fault::Op, "not a predefined operation");
    what.apply = kernel(call.op, basic);
    if (!admits(call.op, basic)) return fail(Fault::Op, "%s is not defined for %s", name(call.op), name(basic));
    // As MPICH and Open MPI do, data that is only moved may be of another predefined type at the origin than at the
    // target. As MPICH does, integers may differ in their sign: the target's type decides.
    const auto agree = [&](const Operand& operand, const char* which, bool moved) {
        const Basic other = operand.layout->basic();
        if (other != basic && total(operand) != 0 && !differ_in_sign(other, basic) &&
            !(moved && is_dense(other) && is_dense(basic)))
            return fail(Fault::Type, "the %s datatype is made of %s, the target's of %s", which, name(other),
                        name(basic));
        if (total(operand) != there)
            return fail(Fault::Truncate, "%zu bytes in the %s operand, %zu at the target", total(operand), which,
                        there);
        return Fault::None;
    };
    if (call.op != Op::NoOp)
        if (const Fault fault = agree(call.origin, "origin", call.op == Op::Replace); fault != Fault::None)
            return fault;
    if (call.kind == OpKind::GetAccumulate) return agree(call.result, "result", true);
    return Fault::None;
}

Fault find_extent(const Call& call, std::uint64_t unit, std::int64_t& start, Bounds& touched) {
    touched = {};
    if (call.kind == OpKind::Get && total(call.origin) == 0) return Fault::None;
    Bounds bounds;
    if (__builtin_mul_overflow(call.disp, static_cast<std::int64_t>(unit), &start) ||
        !call.target.layout->bounds(call.target.count, bounds) ||
        __builtin_add_overflow(start, bounds.lo, &touched.lo) || __builtin_add_overflow(start, bounds.hi, &touched.hi))
        return fail(Fault::Range, "displacement %lld with unit %llu leaves the address space",
                    static_cast<long long>(call.disp), static_cast<unsigned long long>(unit));
    return Fault::None;
}

Fault execute(const Call& call, const Update& what, std::int64_t start, Transport& target) {
    switch (call.kind) {
        case OpKind::Put:
        case OpKind::Get:
            target.move_all(call, start);
            return target.finish();
        case OpKind::Accumulate:
        case OpKind::GetAccumulate:
            return execute_update(call, what, start, target);
        case OpKind::CompareAndSwap:
            target.update(what, start, call.origin.base, call.result.base, 1);
            return target.finish();
    }
    return Fault::None;
}

}  // namespace osc::op

namespace osc {

void Transport::move_all(const op::Call& call, std::int64_t start) {
    op::for_each_pair(*call.origin.layout, call.origin.count, *call.target.layout, call.target.count,
                      [&](std::ptrdiff_t here, std::ptrdiff_t there, std::size_t bytes) {
                          move(call.kind == op::OpKind::Put, start + there, op::at(call.origin.base, here), bytes);
                      });
}

}  // namespace osc
