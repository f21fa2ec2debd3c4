// Predefined datatypes of MPICH's ABI.
#include "abi/abi.h"

namespace osc::abi {

namespace detail {
const TypeInfo* g_predefined[256];
Basic g_plain_basic[256];
}  // namespace detail

std::span<const PredefinedType> own_types() {
    static constexpr PredefinedType kTypes[] = {
#ifdef MPI_LB
        {MPI_LB, Basic::None},
#endif
#ifdef MPI_UB
        {MPI_UB, Basic::None},
#endif
#ifdef MPIX_C_FLOAT16
        {MPIX_C_FLOAT16, Basic::F16},
#endif
        // Types that MPICH has from 5.0 on, by number: a library built with an older one serves them too.
        {0x4c001032, Basic::I128},       // MPI_INTEGER16
        {0x4c000226, Basic::F16},        // MPI_REAL2
        {0x4c00042e, Basic::C16},        // MPI_COMPLEX4
        {0x4c000147, Basic::Logical1},   // MPI_LOGICAL1
        {0x4c000248, Basic::Logical2},   // MPI_LOGICAL2
        {0x4c000449, Basic::Logical4},   // MPI_LOGICAL4
        {0x4c00084a, Basic::Logical8},   // MPI_LOGICAL8
        {0x4c00104b, Basic::Logical16},  // MPI_LOGICAL16
        {0x4c00024c, Basic::Bf16},       // MPIX_BFLOAT16
    };
    return kTypes;
}

void enter_type(MPI_Datatype type, Basic basic) {
    const HandleKey key = handle_key(type);
    const TypeInfo*& slot = detail::g_predefined[detail::predefined_slot(key)];
    if (!slot) slot = new TypeInfo(key, op::Layout::leaf(basic), true);
    if (slot->contiguous && (key >> 24) == 0x4c) detail::g_plain_basic[key & 0xff] = basic;
}

// Other handles are of another kind, or null. MPICH dereferences them when it composes its error message.
bool may_be_datatype(MPI_Datatype type) noexcept {
    const HandleKey key = handle_key(type);
    return type != MPI_DATATYPE_NULL && (key & 0x3c000000) == 0x0c000000 && key >> 30 != 0;
}

bool may_be_info(MPI_Info info) noexcept {
    const HandleKey key = handle_key(info);
    return info == MPI_INFO_NULL || ((key & 0x3c000000) == 0x1c000000 && key >> 30 != 0);
}

int modern_combiner(int combiner) noexcept {
    switch (combiner) {
        case MPI_COMBINER_HVECTOR_INTEGER:
            return MPI_COMBINER_HVECTOR;
        case MPI_COMBINER_HINDEXED_INTEGER:
            return MPI_COMBINER_HINDEXED;
        case MPI_COMBINER_STRUCT_INTEGER:
            return MPI_COMBINER_STRUCT;
        default:
            return combiner;
    }
}

}  // namespace osc::abi
