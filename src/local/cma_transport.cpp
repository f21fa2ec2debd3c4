// Put, get and updates across address spaces.
#include "local/cma_transport.h"

namespace osc::cma {

void Cross::move(bool write, std::int64_t disp, void* memory, std::size_t bytes) {
    (write ? writes_ : reads_).add(base_ + static_cast<std::uint64_t>(disp), memory, bytes);
}

void Cross::update(const Update& how, std::int64_t disp, const void* origin, void* result, std::size_t count) {
    updates_.add(how, disp, origin, result, count);
}

Fault Cross::finish() {
    note(updates_.finish());
    note(fault_of(writes_.finish(), pid_));
    note(fault_of(reads_.finish(), pid_));
    return fault_;
}

}  // namespace osc::cma
