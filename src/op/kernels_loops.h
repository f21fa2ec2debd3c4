// The loops behind the kernels and the table of them. Included by one source file per instruction set, which compiles
// them with its own processor flags. Everything with code is therefore in an unnamed namespace and uses no inline
// function from elsewhere: otherwise the linker could merge an AVX copy into code that runs on any processor.
// -O3 vectorises the loops. They are so short that one that straddles two cache lines takes up to half as long again,
// so all are aligned. A fused multiply-add would make results depend on the processor, and ranks may run on different
// ones.
#pragma once

#include <cstring>
#include <type_traits>
#include <utility>

#include "base/copy_bytes.h"
#include "op/kernels_table.h"
#include "op/representation.h"

// One iteration's store is never another's load, also when both arrays are the same. Without this hint GCC tests
// for overlap at run time and takes the scalar loop for equal pointers.
#if defined(__GNUC__) && !defined(__clang__)
#define OSC_INDEPENDENT_ITERATIONS _Pragma("GCC ivdep")
#else
#define OSC_INDEPENDENT_ITERATIONS
#endif

namespace osc::op {
namespace {

/// A T at any address, of whatever type the memory was declared.
template <class T>
struct [[gnu::packed, gnu::may_alias]] Loose {
    T value;
};

template <std::size_t Size>
struct UnsignedOf;
template <>
struct UnsignedOf<1> : std::type_identity<std::uint8_t> {};
template <>
struct UnsignedOf<2> : std::type_identity<std::uint16_t> {};
template <>
struct UnsignedOf<4> : std::type_identity<std::uint32_t> {};
template <>
struct UnsignedOf<8> : std::type_identity<std::uint64_t> {};
template <>
struct UnsignedOf<16> : std::type_identity<Uint128> {};

template <class T>
inline constexpr bool is_small_unsigned = std::is_same_v<T, std::uint8_t> || std::is_same_v<T, std::uint16_t>;

template <class T>
inline constexpr bool is_half = std::is_same_v<T, Bfloat16> || (has_float16 && std::is_same_v<T, Float16>);

/// What T is computed in: small unsigned integers would be promoted to int, whose product may overflow; a float holds
/// enough digits that its sums and products round to 16 bits as the exact ones do.
template <class T>
using Computed = std::conditional_t<is_small_unsigned<T>, std::uint32_t, std::conditional_t<is_half<T>, float, T>>;

template <class T>
Computed<T> widen(T value) {
    if constexpr (std::is_same_v<T, Bfloat16>) {
        return __builtin_bit_cast(float, static_cast<std::uint32_t>(value.bits) << 16);
    } else {
        return static_cast<Computed<T>>(value);
    }
}

/// Rounds to the nearest value of T, ties to even. A NaN stays one and becomes quiet.
template <class T>
T narrow(Computed<T> value) {
    if constexpr (std::is_same_v<T, Bfloat16>) {
        const auto bits = __builtin_bit_cast(std::uint32_t, value);
        const std::uint32_t rounded = bits + 0x7fff + ((bits >> 16) & 1);
        const std::uint32_t kept = value != value ? bits | 0x400000 : rounded;
        return {static_cast<std::uint16_t>(kept >> 16)};
    } else {
        return static_cast<T>(value);
    }
}

template <Op TheOp, class T>
T combine(T target, T origin) {
    if constexpr (TheOp == Op::Max) {
        return widen(origin) > widen(target) ? origin : target;
    } else if constexpr (TheOp == Op::Min) {
        return widen(origin) < widen(target) ? origin : target;
    } else if constexpr (TheOp == Op::Sum) {
        return narrow<T>(widen(target) + widen(origin));
    } else if constexpr (TheOp == Op::Prod) {
        return narrow<T>(widen(target) * widen(origin));
    } else if constexpr (TheOp == Op::Land) {
        return static_cast<T>((target != 0) & (origin != 0));
    } else if constexpr (TheOp == Op::Lor) {
        return static_cast<T>((target | origin) != 0);
    } else if constexpr (TheOp == Op::Lxor) {
        return static_cast<T>((target != 0) != (origin != 0));
    } else if constexpr (TheOp == Op::Band) {
        return static_cast<T>(target & origin);
    } else if constexpr (TheOp == Op::Bor) {
        return static_cast<T>(target | origin);
    } else {
        static_assert(TheOp == Op::Bxor);
        return static_cast<T>(target ^ origin);
    }
}

/// Never inlined, so that add_complex shares it.
template <Op TheOp, class T>
[[gnu::noinline]] void combine_all(void* target, const void* origin, std::size_t count) {
    auto* t = static_cast<Loose<T>*>(target);
    const auto* o = static_cast<const Loose<T>*>(origin);
    OSC_INDEPENDENT_ITERATIONS
    for (std::size_t i = 0; i < count; ++i) {
        t[i].value = combine<TheOp, T>(t[i].value, o[i].value);
    }
}

template <class Part>
void add_complex(void* target, const void* origin, std::size_t count) {
    combine_all<Op::Sum, Part>(target, origin, 2 * count);
}

template <class Part>
void multiply_complex(void* target, const void* origin, std::size_t count) {
    auto* t = static_cast<Loose<ComplexOf<Part>>*>(target);
    const auto* o = static_cast<const Loose<ComplexOf<Part>>*>(origin);
    OSC_INDEPENDENT_ITERATIONS
    for (std::size_t i = 0; i < count; ++i) {
        const Computed<Part> a = widen(t[i].value.re);
        const Computed<Part> b = widen(t[i].value.im);
        const Computed<Part> c = widen(o[i].value.re);
        const Computed<Part> d = widen(o[i].value.im);
        t[i].value.re = narrow<Part>(a * c - b * d);
        t[i].value.im = narrow<Part>(a * d + b * c);
    }
}

template <Op TheOp, class Value, class Index>
void locate(void* target, const void* origin, std::size_t count) {
    auto* t = static_cast<Loose<PairOf<Value, Index>>*>(target);
    const auto* o = static_cast<const Loose<PairOf<Value, Index>>*>(origin);
    for (std::size_t i = 0; i < count; ++i) {
        const Value mine = t[i].value.value;
        const Value theirs = o[i].value.value;
        const bool better = TheOp == Op::Minloc ? theirs < mine : theirs > mine;
        if (better) {
            t[i].value.value = theirs;
            t[i].value.index = o[i].value.index;
        } else if (theirs == mine) {
            const Index index = o[i].value.index;
            t[i].value.index = combine<Op::Min, Index>(t[i].value.index, index);
        }
    }
}

template <class T>
void replace(void* target, const void* origin, std::size_t count) {
    // A call of memmove costs more than the copy of one element, and one element is the usual case.
    if (count == 1) {
        *static_cast<Loose<T>*>(target) = *static_cast<const Loose<T>*>(origin);
    } else if (count * sizeof(T) >= base::kLongCopy) {
        base::copy_long(target, origin, count * sizeof(T));
    } else if (count != 0) {
        std::memmove(target, origin, count * sizeof(T));
    }
}

template <class Value, class Index>
void replace_padded(void* target, const void* origin, std::size_t count) {
    auto* t = static_cast<Loose<PairOf<Value, Index>>*>(target);
    const auto* o = static_cast<const Loose<PairOf<Value, Index>>*>(origin);
    for (std::size_t i = 0; i < count; ++i) {
        t[i].value.value = o[i].value.value;
        t[i].value.index = o[i].value.index;
    }
}

[[maybe_unused]] void do_nothing(void*, const void*, std::size_t) {}

template <Op TheOp, class Part>
consteval Kernel pick_complex(std::type_identity<ComplexOf<Part>>) {
    return TheOp == Op::Sum ? &add_complex<Part> : &multiply_complex<Part>;
}

template <Op TheOp, class Value, class Index>
consteval Kernel pick_pair(std::type_identity<PairOf<Value, Index>>) {
    if constexpr (TheOp != Op::Replace) {
        return &locate<TheOp, Value, Index>;
    } else if constexpr (sizeof(Value) + sizeof(Index) < sizeof(PairOf<Value, Index>)) {
        return &replace_padded<Value, Index>;
    } else {
        return &replace<Opaque<sizeof(PairOf<Value, Index>)>>;
    }
}

/// Whether wider vectors than the baseline's speed a kernel up.
template <Op TheOp, class R>
consteval bool is_vectorised() {
    if constexpr (TheOp == Op::Replace || TheOp == Op::NoOp || R::group == Group::Pair) {
        return false;
    } else {
        return sizeof(typename R::Type) / (R::group == Group::Complex ? 2 : 1) <= sizeof(std::uint64_t);
    }
}

template <Isa TheIsa, Op TheOp, Basic TheBasic>
consteval Kernel pick() {
    using R = Representation<TheBasic>;
    using T = typename R::Type;
    constexpr bool moves_only = TheOp == Op::Replace || TheOp == Op::NoOp;
    // NOLINTNEXTLINE(bugprone-branch-clone): only what passes the first condition has a type of a size
    if constexpr (!defined_on(TheOp, R::group) || (!R::can_compute && !moves_only)) {
        return nullptr;
    } else if constexpr (TheIsa != Isa::Baseline && !is_vectorised<TheOp, R>()) {
        return nullptr;
    } else if constexpr (TheOp == Op::NoOp) {
        return &do_nothing;
    } else if constexpr (R::group == Group::Pair) {
        return pick_pair<TheOp>(std::type_identity<T>{});
    } else if constexpr (TheOp == Op::Replace) {
        return &replace<Opaque<sizeof(T)>>;
    } else if constexpr (R::group == Group::Complex) {
        return pick_complex<TheOp>(std::type_identity<T>{});
    } else if constexpr (R::group == Group::Floating || TheOp == Op::Max || TheOp == Op::Min) {
        return &combine_all<TheOp, T>;
    } else {
        // The same bits result for signed and unsigned, but only unsigned integers may wrap around.
        return &combine_all<TheOp, typename UnsignedOf<sizeof(T)>::type>;
    }
}

template <Isa TheIsa>
consteval KernelTable make_table() {
    return []<std::size_t... Cell>(std::index_sequence<Cell...>) {
        return KernelTable{{pick<TheIsa, KernelTable::op_of(Cell), KernelTable::basic_of(Cell)>()...}};
    }
    (std::make_index_sequence<KernelTable::cells>{});
}

}  // namespace
}  // namespace osc::op
