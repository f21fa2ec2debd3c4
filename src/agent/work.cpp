// Checking and doing one operation.
#include "agent/work.h"

namespace osc::agent {

Fault fault_of(Status status, std::uint32_t rank) {
    switch (status) {
        case Status::Done:
            return Fault::None;
        case Status::Malformed:
            break;
        case Status::UnknownWindow:
            return diag::fail(Fault::Win, "rank %u has freed the window", rank);
        case Status::OutOfRange:
            return diag::fail(Fault::Range, "memory that rank %u does not expose in the window", rank);
        case Status::NotAdmitted:
            return diag::fail(Fault::Op, "rank %u: operation not defined for the type", rank);
        case Status::HolderDied:
            return diag::fail(Fault::Dead, "a process died while it held a lock, or an element, of rank %u", rank);
        case Status::PeerDied:
            return diag::fail(Fault::Dead, "rank %u died, or does not answer any more", rank);
    }
    return diag::fail(Fault::Other, "rank %u found a message of this process malformed", rank);
}

Status check_operation(Kind kind, Basic basic, Op op, std::uint64_t bytes, Update& how) {
    if (bytes == 0) return Status::Malformed;
    if (kind == Kind::Put || kind == Kind::Get) return Status::Done;
    if (basic == Basic::None || basic >= Basic::Count) return Status::NotAdmitted;
    how = {basic, op, nullptr, op::kernel(Op::Replace, basic), op::element_size(basic)};
    if (kind == Kind::CompareAndSwap) {
        if (!op::admits_compare(basic)) return Status::NotAdmitted;
        return bytes == how.width ? Status::Done : Status::Malformed;
    }
    if (op == Op::None || op >= Op::Count || !op::admits(op, basic)) return Status::NotAdmitted;
    how.apply = op::kernel(op, basic);
    return bytes % how.width == 0 ? Status::Done : Status::Malformed;
}

Status work(shm::Direct& memory, Kind kind, const Update& how, std::int64_t disp, std::size_t bytes,
            const std::byte* data, std::byte* out) {
    switch (kind) {
        case Kind::Put:
            memory.put(disp, data, bytes);
            break;
        case Kind::Get:
            memory.get(disp, out, bytes);
            break;
        case Kind::Update:
        case Kind::UpdateReturn:
            memory.update(how, disp, how.op != Op::NoOp ? data : nullptr, kind == Kind::UpdateReturn ? out : nullptr,
                          bytes / how.width);
            break;
        case Kind::CompareAndSwap:
            memory.compare_and_swap(how, disp, data, data + bytes, out);
            break;
    }
    return memory.finish() == Fault::None ? Status::Done : Status::HolderDied;
}

}  // namespace osc::agent
