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

void Cross::compare_and_swap(const Update& how, std::int64_t disp, const void* origin, const void* compare,
                             void* result) {
    if (fault_ != Fault::None) return;
    int error = 0;
    note(shm::for_each_locked(stripes_, disp, how.width, 1, [&](std::size_t, std::size_t) {
        alignas(16) std::byte old[32];
        error = transfer(Direction::Read, pid_, remote(disp), old, how.width);
        if (error != 0) return;
        const bool same = op::equal(how.basic, old, compare);
        how.copy(result, old, 1);
        if (same) error = transfer(Direction::Write, pid_, remote(disp), const_cast<void*>(origin), how.width);
    }));
    note(fault_of(error, pid_));
}

Fault Cross::finish() {
    note(updates_.finish());
    note(fault_of(writes_.finish(), pid_));
    note(fault_of(reads_.finish(), pid_));
    return fault_;
}

}  // namespace osc::cma
