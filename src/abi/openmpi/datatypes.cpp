// Predefined datatypes of Open MPI.
#include "abi/abi.h"

namespace osc::abi {

namespace detail {
const TypeInfo* g_predefined[kSlots];
}

std::span<const PredefinedType> own_types() {
    return {};
}

void enter_type(MPI_Datatype type, Basic basic) {
    const TypeInfo*& slot = detail::slot_of(handle_key(type));
    if (slot == nullptr) slot = new TypeInfo(handle_key(type), op::Layout::leaf(basic), true);
}

bool may_be_datatype(MPI_Datatype type) noexcept {
    return type != nullptr && type != MPI_DATATYPE_NULL;
}

bool may_be_info(MPI_Info info) noexcept {
    return info != nullptr;
}

// Open MPI has removed the constructors of MPI 1.
int modern_combiner(int combiner) noexcept {
    return combiner;
}

}  // namespace osc::abi
