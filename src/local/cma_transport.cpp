// Put, get and updates across address spaces.
#include "local/cma_transport.h"

#include <cstring>

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

// A copy of `bytes` bytes, aligned for T.
template <class T>
T* Collected::keep(const void* from, std::size_t bytes) {
    used_ = (used_ + alignof(T) - 1) / alignof(T) * alignof(T);
    std::byte* const copy = copies_.data() + used_;
    std::memcpy(copy, from, bytes);
    used_ += bytes;
    return reinterpret_cast<T*>(copy);
}

void Collected::add(const op::Simple& what, std::int64_t disp) {
    constexpr std::size_t kMostKept = kMostPut + sizeof(Update) + 4 * alignof(Update);
    if (used_ > copies_.size() - kMostKept) perform();
    if (!cross_) cross_.emplace(pid_, base_, stripes_);
    if (what.kind == op::OpKind::Get) return cross_->move(false, disp, what.result, what.bytes);
    if (what.kind == op::OpKind::Put)
        return cross_->move(true, disp, keep<std::byte>(what.origin, what.bytes), what.bytes);
    const Update& how = *what.how;
    if (how_ == nullptr || how.compare != nullptr || how_->op != how.op || how_->basic != how.basic) {
        auto* const copy = keep<Update>(&how, sizeof how);
        if (how.compare != nullptr) copy->compare = keep<std::uint64_t>(how.compare, what.bytes);
        how_ = copy;
    }
    cross_->update(*how_, disp, keep<std::uint64_t>(what.origin, what.bytes), what.result, 1);
}

void Collected::perform() {
    const Fault fault = cross_->finish();
    fault_.note(fault);
    if (fault != Fault::None) cross_.reset();  // it keeps its fault
    how_ = nullptr;
    used_ = 0;
}

Fault Collected::finish() {
    if (cross_) perform();
    return fault_.take();
}

}  // namespace osc::cma
