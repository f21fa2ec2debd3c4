// Handles of Open MPI: pointers to its objects. Those of predefined objects are addresses of its data.
#pragma once

#include <iterator>

#include "abi/abi.h"

// The sessions of MPI 4, as Open MPI's headers from 5 on have them.
#if MPI_VERSION < 4
using MPI_Session = struct ompi_instance_t*;
#define MPI_SESSION_NULL \
    MPI_Session {}
#endif

namespace osc::abi {

inline constexpr std::size_t kWindowPlaces = kAddressPlaces;
constexpr std::size_t window_index(HandleKey key) noexcept {
    return place_of_address(key);
}

inline Op op_of(MPI_Op op) noexcept {
    // In the order of Op.
    static const MPI_Op known[] = {MPI_OP_NULL, MPI_MAX,    MPI_MIN,    MPI_SUM,     MPI_PROD,
                                   MPI_LAND,    MPI_BAND,   MPI_LOR,    MPI_BOR,     MPI_LXOR,
                                   MPI_BXOR,    MPI_MINLOC, MPI_MAXLOC, MPI_REPLACE, MPI_NO_OP};
    static_assert(std::size(known) == static_cast<std::size_t>(Op::Count));
    for (std::size_t i = 1; i < std::size(known); ++i)
        if (known[i] == op) return static_cast<Op>(i);
    return Op::None;
}

namespace detail {
// A hash table that is mostly empty: the objects have 512 bytes each and lie one behind the other, except those that
// the linker copies into the program's data.
inline constexpr std::size_t kSlots = 1024;
extern const TypeInfo* g_predefined[kSlots];

/// The slot with the type, or the empty one where it belongs.
inline const TypeInfo*& slot_of(HandleKey key) noexcept {
    for (std::size_t at = key >> 9;; ++at) {
        const TypeInfo*& slot = g_predefined[at & (kSlots - 1)];
        if (slot == nullptr || slot->key == key) return slot;
    }
}
}  // namespace detail

inline const TypeInfo* predefined(MPI_Datatype type) noexcept {
    return detail::slot_of(handle_key(type));
}

inline std::int64_t plain_size(MPI_Datatype type) noexcept {
    const TypeInfo* info = predefined(type);
    return info && info->contiguous ? static_cast<std::int64_t>(info->size) : -1;
}

inline bool is_plain_of_8(MPI_Datatype type) noexcept {
    return plain_size(type) == 8;
}

inline Basic plain_basic(MPI_Datatype type) noexcept {
    const TypeInfo* info = predefined(type);
    return info && info->contiguous ? info->basic : Basic::None;
}

inline bool plain_integer64(MPI_Datatype type) noexcept {
    const Basic basic = plain_basic(type);
    return basic == Basic::I64 || basic == Basic::U64;
}

}  // namespace osc::abi
