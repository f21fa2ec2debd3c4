// What a program does with a window, as the usage checker sees it: operations and synchronisation calls. No MPI types.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/core.h"
#include "op/call.h"
#include "plugins/verify/bytes.h"
#include "plugins/verify/site.h"

namespace osc::check {

inline constexpr std::uint32_t kEveryTarget = Core::kEveryTarget;

/// One operation that has been issued.
struct Operation {
    op::OpKind kind = op::OpKind::Put;
    Op op = Op::None;           // of accumulates
    Basic basic = Basic::None;  // the predefined type that the target's datatype is made of; None: several
    const char* call = "";      // "MPI_Put"
    std::uint32_t target = 0;   // rank in the window
    /// The bytes at the target, from displacement 0; in a dynamic window their addresses. Ascending, disjoint. If
    /// `exact` is false there are too many, and one range covers them all.
    std::vector<Bytes> bytes;
    bool exact = true;
    /// The addresses that the operation reads and writes in this process, as `bytes`; empty if `exact_here` is false.
    std::vector<Bytes> reads_here;
    std::vector<Bytes> writes_here;
    bool exact_here = true;
    std::int64_t notification = -1;  // the counter of a notified operation at its target; -1: none
    std::int64_t began = 0;          // of a notified operation: ns, not later than its call
    bool request = false;            // a request completes it at the origin
    std::uint64_t number = 0;        // counts the operations of this process in the window, from 1
    Site site;
};

/// The synchronisation calls. Wait stands for a successful MPI_Win_test too, Flush and FlushLocal for the calls that
/// flush all targets. Request is the completion of a request-based operation by MPI_Wait and the like.
enum class Act : std::uint8_t {
    Fence,
    Start,
    Complete,
    Post,
    Wait,
    Lock,
    Unlock,
    LockAll,
    UnlockAll,
    Flush,
    FlushLocal,
    Sync,
    Request,
    Free,
};

/// Whether a call completes operations, those at Synchronisation::target: at their targets, or at least at this
/// process.
constexpr bool completes(Act act) {
    return act == Act::Fence || act == Act::Complete || act == Act::Unlock || act == Act::UnlockAll ||
           act == Act::Flush;
}
constexpr bool completes_here(Act act) {
    return completes(act) || act == Act::FlushLocal || act == Act::Request || act == Act::Free;
}

struct Synchronisation {
    Act act = Act::Fence;
    const char* call = "";  // "MPI_Win_fence"
    Site site;
    std::uint32_t target = kEveryTarget;  // Lock, Unlock, Flush, FlushLocal, Request: a rank in the window
    bool exclusive = false;               // Lock
    bool exposes = false;                 // Fence: operations may follow, because MPI_MODE_NOSUCCEED was not given
    std::span<const std::uint32_t> group = {};  // Start, Post
    std::uint64_t operation = 0;                // Request: Operation::number
};

}  // namespace osc::check
