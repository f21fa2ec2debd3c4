// Checking and doing operations.
#include "transport/am/target/executor.h"

#include <algorithm>

#include "transport/direct/direct.h"

namespace osc::am {
namespace {

// Whether the standard defines the operation, on whole elements (exactly one for compare-and-swap).
Status check(Operation& operation) {
    const auto& [opcode, basic, op, flags, bytes, disp] = operation.record;
    if (!is_operation(opcode) || bytes == 0) return Status::Malformed;
    if (opcode == Opcode::Put || opcode == Opcode::Get) return Status::Done;
    if (basic == Basic::None || basic >= Basic::Count) return Status::NotAdmitted;
    Update& how = operation.how;
    how = {basic, op, nullptr, nullptr, op::element_size(basic)};
    if (opcode != Opcode::Update) how.copy = op::kernel(Op::Replace, basic);
    if (opcode == Opcode::CompareAndSwap) {
        if (!op::admits_compare(basic)) return Status::NotAdmitted;
        return bytes == how.width ? Status::Done : Status::Malformed;
    }
    if (op == Op::None || op >= Op::Count) return Status::NotAdmitted;
    how.apply = op::kernel(op, basic);
    if (how.apply == nullptr) return Status::NotAdmitted;
    return bytes % how.width == 0 ? Status::Done : Status::Malformed;
}

// Whether all bytes lie in the window; in a dynamic one in attached regions, each element in one.
bool inside(const ExposedWindow& window, const std::vector<shm::Region>* regions, const Operation& operation) {
    const Record& record = operation.record;
    const auto disp = static_cast<std::uint64_t>(record.disp);
    if (regions == nullptr) return record.disp >= 0 && disp <= window.size && record.bytes <= window.size - disp;
    const std::size_t width = std::max<std::size_t>(operation.how.width, 1);
    for (std::uint64_t done = 0; done < record.bytes;) {
        const std::uint64_t address = disp + done;
        const shm::Region* region = shm::find_region(*regions, address);
        if (region == nullptr) return false;
        const std::uint64_t part = std::min(record.bytes - done, region->size - (address - region->base));
        if (part % width != 0) return false;
        done += part;
    }
    return true;
}

Status perform(const ExposedWindow& window, const Operation& operation, std::byte* out) {
    const auto& [record, data, how] = operation;
    // Regions are addresses of this process, so an operation that spans several needs no cut.
    const bool dynamic = window.regions != nullptr;
    shm::Direct memory(dynamic ? reinterpret_cast<std::byte*>(record.disp) : window.base,
                       {window.controls->block(window.rank), window.rank, *window.liveness}, dynamic ? record.disp : 0);
    switch (record.opcode) {
        case Opcode::Put:
            memory.put(record.disp, data, record.bytes);
            break;
        case Opcode::Get:
            memory.get(record.disp, out, record.bytes);
            break;
        case Opcode::CompareAndSwap:
            memory.compare_and_swap(how, record.disp, data, data + record.bytes, out);
            break;
        default:
            memory.update(how, record.disp, how.op != Op::NoOp ? data : nullptr,
                          record.opcode == Opcode::UpdateReturn ? out : nullptr, record.bytes / how.width);
    }
    return memory.finish() == Fault::None ? Status::Done : Status::HolderDied;
}

}  // namespace

Status execute(const ExposedWindow& window, std::span<Operation> operations, std::byte* out) {
    for (Operation& operation : operations)
        if (const Status status = check(operation); status != Status::Done) return status;
    const auto run = [&](const std::vector<shm::Region>* regions) {
        for (const Operation& operation : operations)
            if (!inside(window, regions, operation)) return Status::OutOfRange;
        for (const Operation& operation : operations) {
            if (const Status status = perform(window, operation, out); status != Status::Done) return status;
            out += padded(returned(operation.record));
        }
        return Status::Done;
    };
    if (window.regions == nullptr) return run(nullptr);
    return window.regions->while_attached([&](const std::vector<shm::Region>& regions) { return run(&regions); });
}

}  // namespace osc::am
