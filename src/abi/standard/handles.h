// Handles of the ABI of the MPI 5.0 standard (chapter 20): pointers. Those of predefined objects are numbers below
// 4096, with the kind of object in the bits above the lowest four to eight.
#pragma once

#include <array>

#include "abi/abi.h"

namespace osc::abi {

inline constexpr std::size_t kWindowPlaces = kAddressPlaces;
constexpr std::size_t window_index(HandleKey key) noexcept {
    return place_of_address(key);
}

namespace detail {

constexpr HandleKey kFirstOp = 0x20;
constexpr HandleKey kFirstType = 0x200;

// By the handle's number, from kFirstOp.
inline constexpr auto kOps = [] {
    std::array<Op, 32> ops{};
    for (Op& op : ops)
        op = Op::None;
    ops[0x01] = Op::Sum, ops[0x02] = Op::Min, ops[0x03] = Op::Max, ops[0x04] = Op::Prod;
    ops[0x08] = Op::Band, ops[0x09] = Op::Bor, ops[0x0a] = Op::Bxor;
    ops[0x10] = Op::Land, ops[0x11] = Op::Lor, ops[0x12] = Op::Lxor;
    ops[0x18] = Op::Minloc, ops[0x19] = Op::Maxloc, ops[0x1c] = Op::Replace, ops[0x1d] = Op::NoOp;
    return ops;
}();

// By the handle's number, from kFirstType.
extern std::array<const TypeInfo*, 256> g_predefined;
extern std::array<std::int8_t, 256> g_plain_size;  // of types without gaps; else -1
extern std::array<Basic, 256> g_plain_basic;       // of the same

}  // namespace detail

inline Op op_of(MPI_Op op) noexcept {
    const HandleKey number = handle_key(op) - detail::kFirstOp;
    return number < detail::kOps.size() ? detail::kOps[number] : Op::None;
}

inline const TypeInfo* predefined(MPI_Datatype type) noexcept {
    const HandleKey number = handle_key(type) - detail::kFirstType;
    return number < detail::g_predefined.size() ? detail::g_predefined[number] : nullptr;
}

inline std::int64_t plain_size(MPI_Datatype type) noexcept {
    const HandleKey number = handle_key(type) - detail::kFirstType;
    return number < detail::g_plain_size.size() ? detail::g_plain_size[number] : -1;
}

inline bool is_plain_of_8(MPI_Datatype type) noexcept {
    return plain_size(type) == 8;
}

inline Basic plain_basic(MPI_Datatype type) noexcept {
    const HandleKey number = handle_key(type) - detail::kFirstType;
    return number < detail::g_plain_basic.size() ? detail::g_plain_basic[number] : Basic::None;
}

inline bool plain_integer64(MPI_Datatype type) noexcept {
    const Basic basic = plain_basic(type);
    return basic == Basic::I64 || basic == Basic::U64;
}

}  // namespace osc::abi
