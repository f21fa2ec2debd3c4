// What MPICH and the libraries of its ABI do in their own ways: datatypes, windows, simulated nodes.
// Build: start
#include <cstdlib>
#include <cstring>
#include <string>

#include "abi/abi.h"
#include "abi/mpich/progress.h"

namespace osc::abi {

const char* const kName = "MPICH";
const char* const kSuffix = "";

int make_window(MPI_Comm self, MPI_Win* window) {
    static const auto create = reinterpret_cast<decltype(&::MPI_Win_create)>(host::host_symbol("PMPI_Win_create"));
    return create(nullptr, 0, 1, MPI_INFO_NULL, self, window);
}

MPI_Win window_of(MPI_Fint handle) {
    return handle_of<MPI_Win>(static_cast<HandleKey>(handle));
}

// MPICH from 3.4 on (src/mpi/request/mpir_request.c) keeps one builtin object per kind of request for sends to
// MPI_PROC_NULL: it counts no references of it, and MPI_Wait and MPI_Request_free leave it as it is. Such a handle says
// so in its two highest bits.
bool is_constant_request(MPI_Request request) {
    return handle_key(request) >> 30 == 1;
}

const Progress& progress() {
    return mpich::kProgress;
}

namespace {

// The value of a variable of MPICH, which has three prefixes; null if it is not set.
const char* variable(const char* name) {
    for (const char* prefix : {"MPIR_CVAR_", "MPICH_", "MPIR_PARAM_"})
        if (const char* text = std::getenv((std::string(prefix) + name).c_str()); text != nullptr) return text;
    return nullptr;
}

bool is_on(const char* name) {
    const char* text = variable(name);
    if (text == nullptr) return false;
    for (const char* off : {"", "0", "no", "NO", "false", "FALSE", "off", "OFF"})
        if (std::strcmp(text, off) == 0) return false;
    return true;
}

bool is_above_one(const char* name) {
    const char* text = variable(name);
    return text != nullptr && std::atoi(text) > 1;
}

}  // namespace

// MPICH's variables for its own tests.
bool simulates_nodes() {
    static const bool kSimulates = is_above_one("NUM_CLIQUES") || is_above_one("NUM_CLIQUE") ||
                                   is_on("ODD_EVEN_CLIQUES") || is_on("EVEN_ODD_CLIQUES") || is_on("NOLOCAL") ||
                                   is_on("NO_LOCAL");
    return kSimulates;
}

// Predefined datatypes.

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
    return combiner == MPI_COMBINER_HVECTOR_INTEGER    ? MPI_COMBINER_HVECTOR
           : combiner == MPI_COMBINER_HINDEXED_INTEGER ? MPI_COMBINER_HINDEXED
           : combiner == MPI_COMBINER_STRUCT_INTEGER   ? MPI_COMBINER_STRUCT
                                                       : combiner;
}

std::int64_t array_constant(ArrayConstant, std::int64_t value) noexcept {
    return value;
}

}  // namespace osc::abi
