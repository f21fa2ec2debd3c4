// From the host's datatype handles to flattened layouts. Predefined types cost a table look-up; derived ones are
// flattened once and found again without a lock. Owns the cache, and the host's attribute key whose callback runs when
// a datatype is freed.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <type_traits>

#include "host/handle_table.h"
#include "op/type_info.h"

namespace osc::host {

using op::TypeInfo;
using op::TypeRef;

/// Makes the cache ready; before the first type_info() of a derived type, after the host's MPI_Init. `self`: any
/// communicator of this process whose error handler is MPI_ERRORS_RETURN, valid until release_types(). MPI_Pack of no
/// elements on `self` replaces a query for "is committed", which MPI does not have. Thread-safe; calls after the first
/// do nothing. Returns an MPI error code.
int init_types(MPI_Comm self) noexcept;

/// Frees the attribute key and the cache, at MPI_Finalize before the host's. References stay valid; type_info() then
/// serves predefined types only, until init_types() is called again. No other call may run at the same time.
void release_types() noexcept;

namespace detail {

/// Predefined types by predefined_slot(); init_types() fills both, so that the fast path needs no check for it.
extern const TypeInfo* g_predefined[256];
extern Basic g_plain_basic[256];
extern HandleTable<const TypeInfo> g_types;

// MPICH and its kin number predefined types 0x4c00SSii (SS the size, ii < 0x80 an index) and padded pairs 0x8c00000i;
// the top bit moves the pairs to the upper half. Derived types share slots with pairs: the key tells them apart.
constexpr std::size_t predefined_slot(std::uint64_t key) noexcept {
    return (key & 0xff) | ((key >> 24) & 0x80);
}

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

/// Fills them; calls after the first do nothing. One thread at a time.
void enter_predefined();

/// The slow path: flattens or finds the attribute. Null with an MPI error class in `error`.
const TypeInfo* resolve(MPI_Datatype type, int& error) noexcept;

/// Flattens a datatype from its constructor's arguments. Throws std::bad_alloc, std::length_error if it has
/// too many irregular blocks, and std::invalid_argument for a constructor or predefined type that libosc does not know.
op::Layout flatten(MPI_Datatype type);

}  // namespace detail

/// A predefined type, or null. A few instructions, no MPI call. Thread-safe.
inline const TypeInfo* predefined(MPI_Datatype type) noexcept {
    const std::uint64_t key = handle_key(type);
    if constexpr (std::is_pointer_v<MPI_Datatype>) {
        const TypeInfo* info = detail::g_types.find(key);
        return info && info->predefined ? info : nullptr;
    } else {
        const TypeInfo* info = detail::g_predefined[detail::predefined_slot(key)];
        return info && info->key == key ? info : nullptr;
    }
}

/// The size in bytes of a predefined type without gaps, or -1; for the fast path.
inline std::int64_t plain_size(MPI_Datatype type) noexcept {
    if constexpr (std::is_pointer_v<MPI_Datatype>) {
        const TypeInfo* info = predefined(type);
        return info && info->contiguous ? static_cast<std::int64_t>(info->size) : -1;
    } else {
        // MPICH's handles of these types carry the size in their second byte.
        const std::uint32_t rest = static_cast<std::uint32_t>(type) - 0x4c000000u;
        return rest <= 0xffffff ? detail::second_byte(rest) : -1;
    }
}

/// Whether plain_size() is 8; fewer instructions than that.
inline bool is_plain_of_8(MPI_Datatype type) noexcept {
    if constexpr (std::is_pointer_v<MPI_Datatype>)
        return plain_size(type) == 8;
    else
        return static_cast<std::uint32_t>(type) - 0x4c000800u <= 0xff;
}

/// The basic type of a predefined type without gaps, or Basic::None; as cheap as plain_size().
inline Basic plain_basic(MPI_Datatype type) noexcept {
    if constexpr (std::is_pointer_v<MPI_Datatype>) {
        const TypeInfo* info = predefined(type);
        return info && info->contiguous ? info->basic : Basic::None;
    } else {
        const std::uint32_t rest = static_cast<std::uint32_t>(type) - 0x4c000000u;
        return rest <= 0xffffff ? detail::g_plain_basic[rest & 0xff] : Basic::None;
    }
}

/// Whether plain_basic() is a 64-bit integer.
inline bool plain_integer64(MPI_Datatype type) noexcept {
    Basic basic = Basic::None;
    if constexpr (std::is_pointer_v<MPI_Datatype>)
        basic = plain_basic(type);
    else if (is_plain_of_8(type))
        basic = detail::g_plain_basic[static_cast<std::uint32_t>(type) - 0x4c000800u];
    return basic == Basic::I64 || basic == Basic::U64;
}

/// The description of a committed datatype; valid while the caller's handle is, longer through a TypeRef. Null if
/// the handle is MPI_DATATYPE_NULL or not committed (MPI_ERR_TYPE), libosc cannot describe it
/// (MPI_ERR_UNSUPPORTED_OPERATION) or memory is short (MPI_ERR_NO_MEM); `error` then receives the class. Thread-safe;
/// the first call for a derived type calls the host.
inline const TypeInfo* type_info(MPI_Datatype type, int* error = nullptr) noexcept {
    if (const TypeInfo* info = predefined(type)) [[likely]]
        return info;
    if (const TypeInfo* info = detail::g_types.find(handle_key(type))) [[likely]]
        return info;
    int failure = MPI_SUCCESS;
    const TypeInfo* info = detail::resolve(type, failure);
    if (!info && error) *error = failure;
    return info;
}

}  // namespace osc::host
