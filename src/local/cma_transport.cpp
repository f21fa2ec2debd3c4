// Put, get and updates across address spaces.
#include "local/cma_transport.h"

namespace osc::cma {

void Cross::put(std::int64_t disp, const void* from, std::size_t bytes) {
    writes_.add(remote(disp), const_cast<void*>(from), bytes);
}

void Cross::get(std::int64_t disp, void* to, std::size_t bytes) {
    reads_.add(remote(disp), to, bytes);
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
