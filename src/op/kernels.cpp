// Look-up of kernels and of types' layouts and comparisons; the choice of the instruction set.
#include "op/kernels.h"

#include <array>
#include <cstring>
#include <utility>

#include "op/kernels_table.h"
#include "op/representation.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace osc::op {
namespace {

struct Element {
    std::uint8_t size;
    std::uint8_t significant;
    bool comparable;
    DataRuns runs;
};

template <Basic TheBasic>
consteval Element element_of() {
    using R = Representation<TheBasic>;
    constexpr bool comparable = R::group == Group::Integer || R::group == Group::Logical;
    if constexpr (R::group == Group::None) {
        return {0, 0, false, {0, {}}};
    } else if constexpr (R::group == Group::Pair) {
        using T = typename R::Type;
        constexpr DataRun value{0, sizeof(T::value)};
        constexpr DataRun index{offsetof(T, index), sizeof(T::index)};
        return {sizeof(T), value.size + index.size, comparable, {2, {value, index}}};
    } else {
        constexpr std::uint8_t size = sizeof(typename R::Type);
        return {size, size, comparable, {1, {{0, size}}}};
    }
}

constexpr auto elements = []<std::size_t... Index>(std::index_sequence<Index...>) {
    return std::array{element_of<static_cast<Basic>(Index)>()...};
}
(std::make_index_sequence<KernelTable::basics>{});

const Element& element(Basic basic) {
    const auto index = static_cast<std::size_t>(basic);
    return elements[index < KernelTable::basics ? index : 0];
}

Kernel look_up(const KernelTable& table, Op op, Basic basic) {
    const auto row = static_cast<std::size_t>(op);
    const auto column = static_cast<std::size_t>(basic);
    if (row >= static_cast<std::size_t>(Op::Count) || column >= KernelTable::basics) {
        return nullptr;
    }
    const std::size_t cell = row * KernelTable::basics + column;
    return table.kernel[cell] != nullptr ? table.kernel[cell] : baseline_table.kernel[cell];
}

#ifdef __x86_64__
/// Whether the processor has F16C. Not every compiler that builds this file can ask for it by name.
bool converts_float16() {
    unsigned eax = 0;
    unsigned ebx = 0;
    unsigned ecx = 0;
    unsigned edx = 0;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
#endif

/// The table for the instruction set, or nullptr when this build or this processor does not have it.
const KernelTable* table_for(Isa isa) {
#ifdef __x86_64__
    __builtin_cpu_init();
    if (isa == Isa::Avx512) {
        const bool runs = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
        return runs ? &avx512_table : nullptr;
    }
    if (isa == Isa::Avx2) {
        return __builtin_cpu_supports("avx2") && converts_float16() ? &avx2_table : nullptr;
    }
#endif
    return isa == Isa::Baseline ? &baseline_table : nullptr;
}

// Initialised at compile time and improved when the library is loaded, so that the look-up needs no test. A constructor
// of another library that runs earlier gets correct but slower kernels.
constinit const KernelTable* chosen = &baseline_table;

[[gnu::constructor(101)]] void choose() {
    for (const Isa isa : {Isa::Avx512, Isa::Avx2}) {
        if (const KernelTable* table = table_for(isa)) {
            chosen = table;
            return;
        }
    }
}

}  // namespace

std::size_t element_size(Basic basic) noexcept {
    return element(basic).size;
}

std::size_t significant_size(Basic basic) noexcept {
    return element(basic).significant;
}

DataRuns data_runs(Basic basic) noexcept {
    return element(basic).runs;
}

bool admits(Op op, Basic basic) noexcept {
    return look_up(baseline_table, op, basic) != nullptr;
}

Kernel kernel(Op op, Basic basic) noexcept {
    return look_up(*chosen, op, basic);
}

Kernel kernel(Isa isa, Op op, Basic basic) noexcept {
    const KernelTable* table = table_for(isa);
    return table != nullptr ? look_up(*table, op, basic) : nullptr;
}

bool admits_compare(Basic basic) noexcept {
    return element(basic).comparable;
}

bool equal(Basic basic, const void* a, const void* b) noexcept {
    const DataRuns data = data_runs(basic);
    for (std::size_t i = 0; i < data.count; ++i) {
        const auto [offset, size] = data.run[i];
        if (std::memcmp(static_cast<const char*>(a) + offset, static_cast<const char*>(b) + offset, size) != 0) {
            return false;
        }
    }
    return true;
}

}  // namespace osc::op
