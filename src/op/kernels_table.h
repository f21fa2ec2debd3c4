// The table of kernels of one instruction set, by operation and type. Only kernels.cpp and the files that build the
// tables need it.
#pragma once

#include <cstddef>

#include "op/kernels.h"

namespace osc::op {

struct KernelTable {
    static constexpr std::size_t basics = static_cast<std::size_t>(Basic::Count);
    static constexpr std::size_t cells = static_cast<std::size_t>(Op::Count) * basics;

    // consteval, so that no file compiled for a newer processor leaves a copy behind.
    static consteval Op op_of(std::size_t cell) { return static_cast<Op>(cell / basics); }
    static consteval Basic basic_of(std::size_t cell) { return static_cast<Basic>(cell % basics); }

    Kernel kernel[cells];  // those that wider vectors do not speed up are the baseline's alone
};

extern const KernelTable baseline_table;
#ifdef __x86_64__
extern const KernelTable avx2_table;
extern const KernelTable avx512_table;
#endif

}  // namespace osc::op
