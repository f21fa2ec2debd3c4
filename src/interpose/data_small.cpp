#include "interpose/data_small.h"

#include "base/inject.h"
#include "host/datatype.h"
#include "interpose/serve.h"

namespace osc::small {
namespace {

using am::Opcode;

constexpr std::uint64_t kMostBytes = 1024;  // larger operations gain nothing

// Windows on one node have no targets here. Built-in faults are in the general path.
bool may_reach(const Target& target) {
    return !OSC_FAULT_ANY && target.window != nullptr && target.window->remote_sync != nullptr;
}

// Zero: not for the short path.
std::uint64_t bytes_of(int count, std::int64_t width) {
    if (count <= 0 || width <= 0) return 0;
    const auto bytes = static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(width);
    return bytes <= kMostBytes ? bytes : 0;
}

bool perform(const Target& target, Opcode opcode, Basic basic, Op op, std::uint64_t bytes, const void* data,
             const void* compare, void* result) {
    const am::Record record{opcode, basic, op, 0, static_cast<std::uint32_t>(bytes), target.disp};
    return target.window->try_small(static_cast<std::uint32_t>(target.rank), {record, data, compare, result});
}

// An accumulate of a type whose elements have no padding, and an operation that it admits.
bool update(const Target& target, Opcode opcode, int count, MPI_Datatype type, MPI_Op op, const void* origin,
            void* result) {
    if (!may_reach(target)) return false;
    const Basic basic = host::plain_basic(type);
    const Op known = op_of(op);
    if (basic == Basic::None || known == Op::None || !op::admits(known, basic)) return false;
    if (known == Op::NoOp && opcode == Opcode::Update) return false;  // an error
    const std::size_t width = op::element_size(basic);
    const std::uint64_t bytes = op::significant_size(basic) == width ? bytes_of(count, static_cast<int>(width)) : 0;
    return bytes != 0 &&
           perform(target, opcode, basic, known, bytes, known == Op::NoOp ? nullptr : origin, nullptr, result);
}

}  // namespace

bool put(const Target& target, const void* origin, int count, MPI_Datatype type) {
    if (!may_reach(target)) return false;
    const std::uint64_t bytes = bytes_of(count, host::plain_size(type));
    return bytes != 0 && perform(target, Opcode::Put, Basic::None, Op::None, bytes, origin, nullptr, nullptr);
}

bool get(const Target& target, void* origin, int count, MPI_Datatype type) {
    if (!may_reach(target)) return false;
    const std::uint64_t bytes = bytes_of(count, host::plain_size(type));
    return bytes != 0 && perform(target, Opcode::Get, Basic::None, Op::None, bytes, nullptr, nullptr, origin);
}

bool accumulate(const Target& target, const void* origin, int count, MPI_Datatype type, MPI_Op op) {
    return update(target, Opcode::Update, count, type, op, origin, nullptr);
}

bool fetch(const Target& target, const void* origin, void* result, int count, MPI_Datatype type, MPI_Op op) {
    return update(target, Opcode::UpdateReturn, count, type, op, origin, result);
}

bool compare_and_swap(const Target& target, const void* origin, const void* compare, void* result, MPI_Datatype type) {
    if (!may_reach(target)) return false;
    const Basic basic = host::plain_basic(type);
    if (basic == Basic::None || !op::admits_compare(basic)) return false;
    const std::size_t width = op::element_size(basic);
    return op::significant_size(basic) == width &&
           perform(target, Opcode::CompareAndSwap, basic, Op::None, width, origin, compare, result);
}

}  // namespace osc::small
