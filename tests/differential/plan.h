// The operations of one round, which every rank plans alike from the seed, and the model's predictions: the bytes that
// each operation returns, and the window's bytes after each phase. All operations of a phase may run at the same time,
// so their locations are disjoint, or they commute, or their origin orders them (accumulates to one location), or their
// possible outcomes are checked as a set.
#pragma once

#include <string>
#include <vector>

#include "layouts.h"
#include "place.h"

namespace diff {

enum class Call {
    Put,
    Get,
    Accumulate,
    GetAccumulate,
    PutC,
    GetC,
    AccumulateC,
    GetAccumulateC,
    Rput,
    Rget,
    Raccumulate,
    RgetAccumulate,
    RputC,
    RgetC,
    RaccumulateC,
    RgetAccumulateC,
    FetchAndOp,
    CompareAndSwap,
    Count
};
const char* name_of(Call call);
inline bool has_request(Call call) {
    return call >= Call::Rput && call <= Call::RgetAccumulateC;
}

enum class Sync { Fence, FenceAsserts, Pscw, LockShared, LockExclusive, Flush, FlushAll, FlushLocal, Count };
const char* name_of(Sync sync);
inline bool passive(Sync sync) {
    return sync >= Sync::LockShared;
}
inline bool locks_all(Sync sync) {
    return sync >= Sync::Flush;
}

/// Bytes of which some may be unknown: unspecified by arithmetic, or dependent on a race.
struct Bytes {
    std::vector<unsigned char> value;
    std::vector<unsigned char> known;
    explicit Bytes(std::size_t size = 0) : value(size, 0), known(size, 1) {}
};

enum class Check {
    Exact,    // the model knows the result
    Nothing,  // depends on the order of operations
    Counter,  // every operation adds 1: the results of all ranks are all the numbers
    Race,     // compare-and-swap from the same value by all: one wins
};

struct Operation {
    Call call{};
    int origin = 0;
    int target = 0;
    Red red = Red::Replace;
    const Basic* basic = nullptr;
    Layout here;                         // origin buffer; for get the buffer that it fills
    Layout back;                         // result buffer of the fetching calls
    Layout there;                        // target
    std::ptrdiff_t start = 0;            // byte of the window where displacement 0 of `there` lies
    std::vector<unsigned char> data;     // origin elements, adjacent
    std::vector<unsigned char> compare;  // one element
    Bytes result;                        // result elements, adjacent
    Check check = Check::Exact;
    std::ptrdiff_t cell = 0;  // first byte of a counter's or race's place
    bool flush_after = false;
    std::string describe() const;
    bool fills_here() const {
        return call == Call::Get || call == Call::GetC || call == Call::Rget || call == Call::RgetC;
    }
    bool fetches() const;
    std::size_t elements() const { return there.at.size(); }
};

/// The owner's stores before the round, so that accumulates find numbers.
struct Refresh {
    int rank;
    std::size_t offset;
    std::vector<unsigned char> bytes;
};

struct Phase {
    std::vector<Operation> operations;
    std::vector<Operation> dropped;  // steps that do not run
    Bytes after;                     // this rank's memory when the phase is over
};

struct Round {
    Sync sync{};
    std::vector<Refresh> refresh;
    std::vector<Phase> phases;
    bool empty() const;
    /// Frees the datatypes of the operations, also of those that no rank has issued.
    void release();
};

using Model = std::vector<Bytes>;  // per rank

/// Plans a round, of which steps() says what runs, and advances the model past that; bytes that a race decides stay
/// unknown.
Round plan_round(Sync sync, const Place& place, Model& model, bool host_safe, Random& random);

/// Applies `op` to the target's bytes; fills op.result.
void apply(Operation& op, Bytes& memory, bool host_safe);

}  // namespace diff
