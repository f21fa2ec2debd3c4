// The status of a reply, by either channel.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/fault.h"

namespace osc::net {

enum class Status : std::uint32_t {
    Done,
    Malformed,      // version, kind or lengths make no sense
    UnknownWindow,  // never existed here, or freed
    OutOfRange,     // outside the window, or in no attached region
    NotAdmitted,    // the operation is not defined for the type
    Inaccessible,   // a page is not mapped, or the program protects it
    Exhausted,      // the target has no memory to read the operations
    HolderDied,     // a process died while it held the lock of an element, or the window's
    PeerDied,       // never sent: the origin itself gives a request to a dead target this status
    Lost,           // never sent: the target lives, but the provider has failed a message or access to it
    Refused,        // never sent: the provider says that the target does not expose the memory
    NoMemory,       // never sent: the provider cannot register the origin's memory
};
inline constexpr std::size_t kStatuses = 12;

/// The status of a direct access that the provider ended with `error` (an errno; 0: none). Lost: the target may be
/// dead.
Status status_of(int error);

/// The fault, with its text, that a reply of rank `rank` stands for; None for Status::Done. An unknown status (it came
/// in a message) is a fault too.
Fault fault_of(Status status, std::uint32_t rank);

}  // namespace osc::net
