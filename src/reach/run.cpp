// Counts the operations of a run, and keeps the fault of its batch.
// Build: -O3
#include "reach/run.h"

#include "local/direct.h"

namespace osc::reach {

void Run::begin() {
    if (batch_ == nullptr)
        batch_ = std::make_unique<shm::Batch>(origin_.me, origin_.controls.local_count(origin_.size), origin_.liveness);
    origin_.incomplete.fetch_add(1, std::memory_order_relaxed);
}

void Run::finish_batch() {
    note(batch_->finish());
}

// Threads of MPI_THREAD_MULTIPLE only read here.
Fault Run::take_fault() {
    perform();
    if (fault_.is_set()) origin_.incomplete.fetch_sub(1, std::memory_order_relaxed);
    return fault_.take();
}

bool is_batchable(const op::Simple& what) {
    if (what.is_transfer() || what.bytes != what.how->width || what.bytes > sizeof(shm::Operands::origin)) return false;
    return what.kind == op::OpKind::Accumulate ||
           (what.kind == op::OpKind::CompareAndSwap && what.bytes >= sizeof(std::uint32_t));
}

shm::ElementUpdate element_at(std::byte* here, const op::Simple& what) {
    shm::ElementUpdate element{here, what.how->apply, {0, 0, what.result}};
    shm::move_bytes(&element.operands.origin, what.origin, what.bytes);
    if (what.kind != op::OpKind::CompareAndSwap) return element;
    shm::move_bytes(&element.operands.compare, what.how->compare, what.bytes);
    element.apply = what.bytes == sizeof(std::uint64_t) ? &shm::swap<std::uint64_t> : &shm::swap<std::uint32_t>;
    return element;
}

}  // namespace osc::reach
