// What a target answers to those who ask it to work on its memory: the agents of a node and the network's threads
// alike.
#pragma once

#include <cstddef>
#include <cstdint>

#include "diag/fault.h"

namespace osc::agent {

enum class Status : std::uint32_t {
    Done,
    Malformed,      // version, kind or lengths make no sense
    UnknownWindow,  // never existed here, or freed
    OutOfRange,     // outside the window, or in no attached region
    NotAdmitted,    // the operation is not defined for the type
    HolderDied,     // a process died while it held the lock of an element, or the window's
    PeerDied,       // never sent: who was asked is gone
};
inline constexpr std::size_t kStatuses = 7;

/// The fault, with its text, that an answer of rank `rank` stands for; None for Status::Done. A status that is none of
/// the above (it came as a message) is a fault too.
Fault fault_of(Status status, std::uint32_t rank);

}  // namespace osc::agent
