// Statuses as faults.
#include "transport/am/status.h"

namespace osc::am {

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
        case Status::HolderDied:
            return base::fail(Fault::Dead, "a process died while it held a lock, or an element, of rank %u", rank);
        case Status::PeerDied:
            return base::fail(Fault::Dead, "rank %u died, or does not answer any more", rank);
    }
    return base::fail(Fault::Other, "rank %u found a message of this process malformed", rank);
}

}  // namespace osc::am
