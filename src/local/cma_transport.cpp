// Put, get and updates across address spaces.
#include "local/cma_transport.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "local/direct.h"
#include "local/image.h"
#include "op/copy.h"

namespace osc::cma {
namespace {

constexpr std::size_t kAtOnce = std::size_t{32} << 10;  // bytes that are read with gaps

}  // namespace

void Gets::perform() {
    const std::span<Get> gets(gets_, std::exchange(count_, 0));
    if (gets.empty() || error_ != 0) return;
    error_ = read(gets);
    if (error_ == 0 || !detour_.takes(error_)) return;
    for (const Get& get : gets)
        detour_.move(false, get.address, get.to, get.bytes);
    error_ = 0;
}

// Returns 0 or errno.
int Gets::read(std::span<Get> gets) {
    if (gets.size() == 1) return transfer(Direction::Read, pid_, gets[0].address, gets[0].to, gets[0].bytes);
    if (!std::ranges::is_sorted(gets, {}, &Get::address)) std::ranges::sort(gets, {}, &Get::address);
    const std::span<std::byte> room = Image::room();
    if (room.empty()) return ENOMEM;
    const auto near = [](std::uint64_t end, const Get& next) { return next.address <= end + Image::kLongestGap; };
    std::uint64_t last = 0;  // end of the get before
    for (auto next = gets.begin(); next != gets.end();) {
        Image image(pid_, room.first(kAtOnce));
        const auto first = next;
        for (; next != gets.end(); last = next++->end()) {
            const bool alone = !near(last, *next) && (next + 1 == gets.end() || !near(next->end(), next[1]));
            if (alone || next->bytes > Image::kLongestGap) {
                image.add(next->address, next->to, next->bytes);
            } else if (next->copy = image.place(next->address, next->bytes); next->copy == nullptr) {
                break;
            }
        }
        if (const int error = image.read(); error != 0) return error;
        for (const Get& get : std::span(first, next))
            if (get.copy != nullptr) shm::move_bytes(get.to, get.copy, get.bytes);
    }
    return 0;
}

void Cross::move(bool write, std::int64_t disp, void* memory, std::size_t bytes) {
    const std::uint64_t address = base_ + static_cast<std::uint64_t>(disp);
    if (write)
        writes_.add(address, memory, bytes);
    else
        gets_.add(address, memory, bytes);
}

void Cross::move_all(const op::Call& call, std::int64_t start) {
    if (call.kind != op::OpKind::Get || !get_with_gaps(call, start)) Transport::move_all(call, start);
}

// Reads all from the first to the last byte of a get, as Image does where it finds short gaps, and copies from there
// without looking at each piece. False if that does not pay, or if there is a hole.
[[gnu::noinline]] bool Cross::get_with_gaps(const op::Call& call, std::int64_t start) {
    const op::Operand& there = call.target;
    op::Bounds bounds;
    const op::Shape& shape = there.layout->data();
    const std::size_t joined = shape.wraps() ? there.count - 1 : 0;  // pieces of two elements
    const std::size_t pieces = shape.blocks() * there.count - joined;
    if (pieces < 2 || !there.layout->bounds(there.count, bounds)) return false;
    const auto bytes = static_cast<std::size_t>(bounds.hi - bounds.lo);
    const std::span<std::byte> room = Image::room();
    if (bytes > std::min(room.size(), pieces * Image::kLongestGap)) return false;
    const std::uint64_t address = base_ + static_cast<std::uint64_t>(start + bounds.lo);
    if (transfer(Direction::Read, pid_, address, room.data(), bytes) != 0) return false;
    op::copy(*call.origin.layout, call.origin.count, call.origin.base, *there.layout, there.count,
             room.data() - bounds.lo);
    return true;
}

void Cross::update(const Update& how, std::int64_t disp, const void* origin, void* result, std::size_t count) {
    updates_.add(how, disp, origin, result, count);
}

Fault Cross::finish() {
    note(updates_.finish());
    note(fault_of(writes_.finish(), pid_));
    note(fault_of(gets_.finish(), pid_));
    note(detour_.finish());
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
    if (!cross_) cross_.emplace(place_);
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
    if (fault != Fault::None || cross_->has_detour()) cross_.reset();  // it keeps its fault and its detour
    how_ = nullptr;
    used_ = 0;
}

Fault Collected::finish() {
    if (cross_) perform();
    return fault_.take();
}

}  // namespace osc::cma
