// Reduction kernels: MPI's predefined operations on arrays of predefined types, the pairs that the standard admits, and
// the memory layout of an element. No locks: the caller ensures atomicity.
//
// Everything below may be called from any thread at any time. None of it allocates, locks or throws.
#pragma once

#include <cstddef>
#include <cstdint>

#include "op/types.h"

namespace osc::op {

/// target[i] = target[i] op origin[i] for i in [0, count), with count in elements of element_size(basic) bytes.
/// Both arrays may start at any byte. They are the same array or do not overlap. Padding is never written.
using Kernel = void (*)(void* target, const void* origin, std::size_t count);

/// run(target, origin, count) for elements of `width` bytes. Wide vectors that straddle cache lines cost a tenth of the
/// speed. malloc puts large arrays 16 bytes past a line, so that this is the usual case. Only the target can be aligned
/// in general, and only a long run repays a second call.
inline void run_aligned(Kernel run, void* target, const void* origin, std::size_t count, std::size_t width) {
    constexpr std::size_t line = 64;
    constexpr std::size_t long_run = 4096;
    if (count * width >= long_run) {
        const std::size_t head = (-reinterpret_cast<std::uintptr_t>(target) % line) / width;
        run(target, origin, head);
        target = static_cast<std::byte*>(target) + head * width;
        origin = static_cast<const std::byte*>(origin) + head * width;
        count -= head;
    }
    run(target, origin, count);
}

/// A run of bytes within one element that carries data.
struct DataRun {
    std::uint8_t offset;  // bytes from the element's start
    std::uint8_t size;    // bytes
};

/// All data of one element: one run, or two for the pair types; padding may lie between and behind them.
struct DataRuns {
    std::uint8_t count;
    DataRun run[2];
};

/// Bytes from one element to the next in an array, padding included (16 for DoubleInt); 0 for None.
std::size_t element_size(Basic basic) noexcept;

/// Where the data of an element lies. A copy that moves more than these bytes writes padding, which a target may
/// use for something else (MPI 4.1 section 5.1: a datatype's gaps are not part of a message).
DataRuns data_runs(Basic basic) noexcept;

/// Bytes of data in one element, which is what MPI_Type_size reports (12 for DoubleInt). Equal to element_size(basic)
/// exactly when an array of the type may be copied as one run of bytes.
std::size_t significant_size(Basic basic) noexcept;

/// Whether MPI allows `op` on `basic`: MPI 4.1 section 6.9.2 by groups of types, 6.9.4 for MINLOC and MAXLOC, 12.3.4
/// for REPLACE and NO_OP (any predefined type). Where types of different groups share a representation the union is
/// admitted. A type that this compiler cannot compute with (F16, F128 on some processors) admits only the last two.
bool admits(Op op, Basic basic) noexcept;

/// The kernel for the pair in the fastest variant that this processor runs, or nullptr when admits(op, basic) is
/// false. Results do not depend on the variant. Beyond what the standard fixes:
/// - integers wrap around;
/// - MAX and MIN replace the target only by an origin that compares greater (less): a NaN in the target stays, a NaN
///   from the origin is ignored, and so is the sign of a zero;
/// - MINLOC and MAXLOC compare values in the same way; of equal values the target's stays, with the lower index;
/// - the product of complex numbers is (ac - bd) + (ad + bc)i as in Fortran, without C's recovery of infinities;
/// - 16-bit floating-point types are computed in float: a sum, a product and each part of a complex product is rounded
///   to 16 bits once, to the nearest, ties to even;
/// - logical types are true when any bit is set; results are stored as 1 and 0.
Kernel kernel(Op op, Basic basic) noexcept;

/// Whether MPI_Compare_and_swap takes the type: integers, logicals, bytes (MPI 4.1 section 12.3.4).
bool admits_compare(Basic basic) noexcept;

/// Whether the elements at `a` and `b`, at any alignment, hold the same bits of data; padding does not count.
bool equal(Basic basic, const void* a, const void* b) noexcept;

/// For messages to the user: MPI's name of an operation; a descriptive name of a type, which may comprise several MPI
/// types. Static storage; never nullptr, even for values outside the enumerations.
const char* name(Op op) noexcept;
const char* name(Basic basic) noexcept;

/// The instruction sets that kernels are compiled for.
enum class Isa : std::uint8_t {
    Baseline,  // what the whole library is compiled for
    Avx2,      // with F16C
    Avx512,    // F, BW, DQ and VL
    Count,
};

/// The kernel as compiled for one instruction set, for tests and benchmarks; nullptr as well when this build or this
/// processor does not have the set.
Kernel kernel(Isa isa, Op op, Basic basic) noexcept;

}  // namespace osc::op
