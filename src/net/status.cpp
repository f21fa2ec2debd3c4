// Statuses as faults.
#include "net/status.h"

#include <cerrno>

namespace osc::net {

Status status_of(int error) {
    if (error == 0) return Status::Done;
    if (error == ENOMEM) return Status::NoMemory;
    return error == EACCES || error == EKEYREJECTED ? Status::Refused : Status::Lost;
}

Fault fault_of(Status status, std::uint32_t rank) {
    switch (status) {
        case Status::Done:
            return Fault::None;
        case Status::Malformed:
            break;
        case Status::UnknownWindow:
            return base::fail(Fault::Win, "rank %u has freed the window", rank);
        case Status::OutOfRange:
            return base::fail(Fault::Range, "memory that rank %u does not expose in the window", rank);
        case Status::NotAdmitted:
            return base::fail(Fault::Op, "rank %u: operation not defined for the type", rank);
        case Status::Inaccessible:
            return base::fail(Fault::Range, "rank %u has memory in the window that is not accessible there", rank);
        case Status::Exhausted:
            return base::fail(Fault::NoMem, "rank %u has no memory to execute the operation", rank);
        case Status::HolderDied:
            return base::fail(
                Fault::Dead,
                "a process died, or its connection was lost, while it held a lock, or an element, of rank %u", rank);
        case Status::PeerDied:
            return base::fail(Fault::Dead, "rank %u died, or does not answer any more", rank);
        case Status::Lost:
            return base::fail(Fault::Dead, "the connection to rank %u is lost: the network has failed, not the process",
                              rank);
        case Status::Refused:
            return base::fail(Fault::Other,
                              "rank %u exposes its memory no more: it has freed the window, or failed to create it",
                              rank);
        case Status::NoMemory:
            return base::fail(Fault::NoMem,
                              "the provider cannot register this process's memory for an access to rank %u: raise the "
                              "limit of locked memory (ulimit -l)",
                              rank);
    }
    return base::fail(Fault::Other, "rank %u found a message of this process malformed", rank);
}

}  // namespace osc::net
