// What the ABI of the MPI 5.0 standard fixes, over MPICH, Open MPI and Intel MPI. Each of them has its own progress and
// its own objects behind the handles that are not predefined.
#include "abi/abi.h"
#include "abi/mpich/progress.h"
#include "abi/openmpi/progress.h"

namespace osc::abi {

const char* const kName = "the MPI standard";
const char* const kSuffix = "_abi";

namespace {

// Numbers above those of predefined objects are of the host's own objects.
constexpr HandleKey kPredefined = 0x1000;

bool is_openmpi() {
    static const bool kIs = host::host_symbol("opal_progress_register") != nullptr;
    return kIs;
}

}  // namespace

// What the host has for files, whose handler it is by default (MPI 4.1 section 14.7). The first call comes before the
// program can change that default (lifetime.cpp), or the answer may be another handler.
MPI_Errhandler errors_return() {
    static const MPI_Errhandler kHandler = [] {
        using Get = int (*)(void* file, MPI_Errhandler* handler);
        const auto get = reinterpret_cast<Get>(host::host_symbol("PMPI_File_get_errhandler"));
        auto* const null_file = reinterpret_cast<void*>(std::uintptr_t{0x118});
        const auto first = handle_of<MPI_Errhandler>(0x142);
        const auto second = handle_of<MPI_Errhandler>(0x143);
        MPI_Errhandler found = nullptr;
        if (get != nullptr) get(null_file, &found);
        return found == second ? second : first;
    }();
    return kHandler;
}

MPI_Errhandler errors_abort() {
    return handle_of<MPI_Errhandler>(0x142 + 0x143 - handle_key(errors_return()));
}

const Progress& progress() {
    return is_openmpi() ? openmpi::kProgress : mpich::kProgress;
}

// As over each host's own ABI. MPICH 5.0.2 crashes in MPI_Win_allocate_shared when it has no communicator left.
int make_window(MPI_Comm self, MPI_Win* window) {
    static const auto create = reinterpret_cast<decltype(&::PMPI_Win_create)>(host::host_symbol("PMPI_Win_create"));
    static const auto allocate =
        reinterpret_cast<decltype(&::PMPI_Win_allocate_shared)>(host::host_symbol("PMPI_Win_allocate_shared"));
    if (!is_openmpi()) return create(nullptr, 0, 1, MPI_INFO_NULL, self, window);
    void* base = nullptr;
    return allocate(0, 1, MPI_INFO_NULL, self, static_cast<void*>(&base), window);
}

MPI_Win window_of(MPI_Fint handle) {
    static const auto to_c = reinterpret_cast<MPI_Win (*)(int)>(host::host_symbol("PMPI_Win_fromint"));
    return to_c(handle);
}

// Open MPI's object, or MPICH's number (abi/mpich/host.cpp).
bool is_constant_request(MPI_Request request) {
    if (is_openmpi()) return reinterpret_cast<void*>(request) == host::host_symbol("ompi_request_empty");
    return handle_key(request) >> 30 == 1;
}

bool simulates_nodes() {
    return false;
}

// No host of this ABI has functions that read windows past PMPI_X.
void* function_for(const char*) {
    return nullptr;
}

// Predefined datatypes.

namespace detail {
std::array<const TypeInfo*, 256> g_predefined;
constinit std::array<std::int8_t, 256> g_plain_size = [] {
    std::array<std::int8_t, 256> none{};
    for (std::int8_t& size : none)
        size = -1;
    return none;
}();
std::array<Basic, 256> g_plain_basic;
}  // namespace detail

std::span<const PredefinedType> own_types() {
    return {};
}

void enter_type(MPI_Datatype type, Basic basic) {
    const HandleKey key = handle_key(type);
    const HandleKey number = key - detail::kFirstType;
    const TypeInfo*& slot = detail::g_predefined.at(number);
    if (slot == nullptr) slot = new TypeInfo(key, op::Layout::leaf(basic), true);
    if (!slot->contiguous) return;
    detail::g_plain_size[number] = static_cast<std::int8_t>(slot->size);
    detail::g_plain_basic[number] = basic;
}

bool may_be_datatype(MPI_Datatype type) noexcept {
    const HandleKey key = handle_key(type);
    return key >= kPredefined || (key > detail::kFirstType && key < detail::kFirstType + 256);
}

bool may_be_info(MPI_Info info) noexcept {
    const HandleKey key = handle_key(info);
    return key >= kPredefined || info == MPI_INFO_NULL || key == handle_key(MPI_INFO_NULL) + 1;  // MPI_INFO_ENV
}

int modern_combiner(int combiner) noexcept {
    return combiner;
}

// Open MPI 6.0.0rc2 returns its own constants, which are none of this ABI's.
std::int64_t array_constant(ArrayConstant kind, std::int64_t value) noexcept {
    switch (kind) {
        case ArrayConstant::Order:
            if (value == 1) return MPI_ORDER_FORTRAN;
            break;
        case ArrayConstant::Distribution:
            if (value == 0) return MPI_DISTRIBUTE_BLOCK;
            if (value == 1) return MPI_DISTRIBUTE_CYCLIC;
            break;
        case ArrayConstant::Argument:
            if (value == -1) return MPI_DISTRIBUTE_DFLT_DARG;
            break;
    }
    return value;
}

}  // namespace osc::abi
