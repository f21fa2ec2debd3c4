// Handles of MPICH's ABI: 32-bit integers with the kind of object in bits 26 to 29.
#pragma once

#include "abi/abi.h"

namespace osc::abi {

inline constexpr std::size_t kWindowPlaces = 256;

// One multiplication and one shift. The number keeps the handles of the first 253 windows apart, which count up from
// two starts: the first eight, and all others. A search found it.
constexpr std::size_t window_index(HandleKey key) noexcept {
    return (key * 0xa3015837u) >> 24;
}

// Predefined operations are 0x58000001 (MPI_MAX) to 0x5800000e (MPI_NO_OP), in the order of Op.
inline Op op_of(MPI_Op op) noexcept {
    static_assert(MPI_MAX == 0x58000001 && MPI_NO_OP == 0x5800000e && static_cast<int>(Op::NoOp) == 14);
    const auto index = static_cast<unsigned>(op) - 0x58000000u;
    return index < static_cast<unsigned>(Op::Count) ? static_cast<Op>(index) : Op::None;
}

namespace detail {

// Predefined types are 0x4c00SSii (SS the size, ii < 0x80 an index), padded pairs 0x8c00000i. The top bit moves the
// pairs to the upper half. Derived types share slots with pairs: the key tells them apart.
extern const TypeInfo* g_predefined[256];
constexpr std::size_t predefined_slot(HandleKey key) noexcept {
    return (key & 0xff) | ((key >> 24) & 0x80);
}

// Of predefined types without gaps, by the last byte.
extern Basic g_plain_basic[256];

/// Bits 8 to 15. Compilers shift and mask, where x86-64 reads them as a register of its own.
inline std::int64_t second_byte(std::uint32_t word) noexcept {
#ifdef __x86_64__
    std::int64_t byte;
    asm("movzbl %h1, %k0" : "=R"(byte) : "Q"(word));
    if (byte < 0) __builtin_unreachable();
    return byte;
#else
    return word >> 8 & 0xff;
#endif
}

}  // namespace detail

inline const TypeInfo* predefined(MPI_Datatype type) noexcept {
    const HandleKey key = handle_key(type);
    const TypeInfo* info = detail::g_predefined[detail::predefined_slot(key)];
    return info && info->key == key ? info : nullptr;
}

inline std::int64_t plain_size(MPI_Datatype type) noexcept {
    const HandleKey rest = handle_key(type) - 0x4c000000u;
    return rest <= 0xffffff ? detail::second_byte(rest) : -1;
}

inline bool is_plain_of_8(MPI_Datatype type) noexcept {
    return handle_key(type) - 0x4c000800u <= 0xff;
}

inline Basic plain_basic(MPI_Datatype type) noexcept {
    const HandleKey rest = handle_key(type) - 0x4c000000u;
    return rest <= 0xffffff ? detail::g_plain_basic[rest & 0xff] : Basic::None;
}

inline bool plain_integer64(MPI_Datatype type) noexcept {
    if (!is_plain_of_8(type)) return false;
    const Basic basic = detail::g_plain_basic[handle_key(type) - 0x4c000800u];
    return basic == Basic::I64 || basic == Basic::U64;
}

}  // namespace osc::abi
