// Put, get and updates across address spaces.
#include "transport/cma/cma_transport.h"

#include <cerrno>
#include <cstring>

#include "diag/inject.h"

namespace osc::cma {

void Cross::note(int error) {
    if (error == 0 || fault_ != Fault::None) return;
    if (error == ESRCH) {
        fault_ = diag::fail(Fault::Dead, "the target process %d is gone", static_cast<int>(pid_));
    } else if (error == EFAULT) {
        fault_ = diag::fail(Fault::Range, "memory of the operation is not accessible at the origin or the target");
    } else {
        fault_ =
            diag::fail(Fault::Other, "access to process %d failed: %s", static_cast<int>(pid_), std::strerror(error));
    }
}

void Cross::put(std::int64_t disp, const void* from, std::size_t bytes) {
    writes_.add(remote(disp), const_cast<void*>(from), bytes);
}

void Cross::get(std::int64_t disp, void* to, std::size_t bytes) {
    reads_.add(remote(disp), to, bytes);
}

int Cross::write_back(const Update& how, std::uint64_t at, std::byte* data, std::size_t count) {
    if (op::significant_size(how.basic) == how.width)
        return transfer(Direction::Write, pid_, at, data, count * how.width);
    const op::Pieces pieces = op::pieces(how.basic);
    Batch batch(Direction::Write, pid_);
    for (std::size_t i = 0; i < count; ++i)
        for (int p = 0; p < pieces.count; ++p)
            batch.add(at + i * how.width + pieces.piece[p].offset, data + i * how.width + pieces.piece[p].offset,
                      pieces.piece[p].size);
    return batch.finish();
}

void Cross::update(const Update& how, std::int64_t disp, const void* origin, void* result, std::size_t count) {
    if (fault_ != Fault::None) return;
    // A chunk's last element may start in the chunk and end behind it.
    alignas(64) std::byte buffer[(std::size_t{1} << shm::kStripeShift) + 64];
    int error = 0;
    const std::int64_t place = OSC_FAULT(stripe_base) ? disp + (std::int64_t{1} << shm::kStripeShift) : disp;
    const Fault dead = shm::for_each_locked(stripes_, place, how.width, count, [&](std::size_t first, std::size_t n) {
        if (error != 0) return;
        const std::size_t skip = first * how.width;
        const std::uint64_t at = remote(disp) + skip;
        error = transfer(Direction::Read, pid_, at, buffer, n * how.width);
        if (error != 0) return;
        if (result != nullptr && !(OSC_FAULT(no_op_unfilled) && how.op == Op::NoOp))
            how.copy(static_cast<std::byte*>(result) + skip, buffer, n);
        if (how.op == Op::NoOp) return;
        how.apply(buffer, static_cast<const std::byte*>(origin) + skip, n);
        error = write_back(how, at, buffer, n);
    });
    if (dead != Fault::None) fault_ = dead;
    note(error);
}

void Cross::compare_and_swap(const Update& how, std::int64_t disp, const void* origin, const void* compare,
                             void* result) {
    if (fault_ != Fault::None) return;
    int error = 0;
    const Fault dead = shm::for_each_locked(stripes_, disp, how.width, 1, [&](std::size_t, std::size_t) {
        alignas(16) std::byte old[32];
        error = transfer(Direction::Read, pid_, remote(disp), old, how.width);
        if (error != 0) return;
        const bool same = OSC_FAULT(swap_uncompared) || op::equal(how.basic, old, compare);
        how.copy(result, old, 1);
        if (same) error = transfer(Direction::Write, pid_, remote(disp), const_cast<void*>(origin), how.width);
    });
    if (dead != Fault::None) fault_ = dead;
    note(error);
}

Fault Cross::finish() {
    note(writes_.finish());
    note(reads_.finish());
    return fault_;
}

}  // namespace osc::cma
