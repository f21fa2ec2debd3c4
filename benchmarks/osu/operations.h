// The operations that are measured. Each can issue itself and says what it makes of the target's memory, which is all
// that validation needs to know about it.
#pragma once

#include <mpi.h>

#include <cstddef>

#include "options.h"

namespace osu {

// One operation: `bytes` between buffers of the origin and displacement `at` of the target.
struct Transfer {
    MPI_Win win;
    int target;
    MPI_Aint at;
    std::byte* operand;
    std::byte* result;
    int bytes;
};

// The operand buffer has this much behind its data, for what an operation takes beside it (the value to compare with).
inline constexpr std::size_t kBesideOperand = 8;

class Operation {
  public:
    virtual ~Operation() = default;
    virtual void issue(const Transfer& transfer) const = 0;

    // Whether it reads an operand, changes the target's memory, and leaves what was there in the result buffer.
    virtual bool sends() const = 0;
    virtual bool changes() const { return sends(); }
    virtual bool fetches() const = 0;

    // Completes an operand that was filled at random, given what the target's memory holds.
    virtual void complete(std::byte* operand, const std::byte* memory, unsigned long long round) const;
    // Does to `memory` what the operations do to `total` bytes of the target, each of them `bytes` long.
    virtual void apply(std::byte* memory, const std::byte* operand, std::size_t total, std::size_t bytes) const = 0;
};

extern const Operation& kPut;
extern const Operation& kGet;
// Sums of unsigned integers, as wide as the size allows: 8, 4, 2 or 1 bytes.
extern const Operation& kAccumulate;
extern const Operation& kGetAccumulate;
// Of 8 bytes.
extern const Operation& kFetchAndOp;
extern const Operation& kCompareAndSwap;

const Operation& operation_of(Kind kind);

}  // namespace osu
