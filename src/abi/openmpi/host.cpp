// What Open MPI does in its own ways: datatypes, windows.
#include "abi/abi.h"
#include "abi/openmpi/progress.h"

namespace osc::abi {

const char* const kName = "Open MPI";
const char* const kSuffix = "_ompi";

// MPI_Win_create of one process takes a component that may fail or open a device.
int make_window(MPI_Comm self, MPI_Win* window) {
    static const auto allocate =
        reinterpret_cast<decltype(&::MPI_Win_allocate_shared)>(host::host_symbol("PMPI_Win_allocate_shared"));
    void* base = nullptr;
    return allocate(0, 1, MPI_INFO_NULL, self, static_cast<void*>(&base), window);
}

MPI_Win window_of(MPI_Fint handle) {
    static const auto to_c = reinterpret_cast<decltype(&::MPI_Win_f2c)>(host::host_symbol("PMPI_Win_f2c"));
    return to_c(handle);
}

bool is_constant_request(MPI_Request request) {
    return reinterpret_cast<void*>(request) == host::host_symbol("ompi_request_empty");
}

bool simulates_nodes() {
    return false;
}

const Progress& progress() {
    return openmpi::kProgress;
}

// Predefined datatypes.

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

std::int64_t array_constant(ArrayConstant, std::int64_t value) noexcept {
    return value;
}

}  // namespace osc::abi
