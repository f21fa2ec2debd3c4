// What each operation calls and what it does to memory (see operations.h).
#include "operations.h"

#include <cstdint>
#include <cstring>

namespace osu {

void Operation::complete(std::byte*, const std::byte*, unsigned long long) const {}

namespace {

std::size_t element_of(std::size_t bytes) {
    return bytes % 8 == 0 ? 8 : bytes % 4 == 0 ? 4 : bytes % 2 == 0 ? 2 : 1;
}

MPI_Datatype unsigned_of(std::size_t width) {
    return width == 8 ? MPI_UINT64_T : width == 4 ? MPI_UINT32_T : width == 2 ? MPI_UINT16_T : MPI_UINT8_T;
}

template <class Unsigned>
void add_as(std::byte* memory, const std::byte* operand, std::size_t total) {
    for (std::size_t i = 0; i < total; i += sizeof(Unsigned)) {
        Unsigned left = 0;
        Unsigned right = 0;
        std::memcpy(&left, memory + i, sizeof left);
        std::memcpy(&right, operand + i, sizeof right);
        const auto sum = static_cast<Unsigned>(left + right);
        std::memcpy(memory + i, &sum, sizeof sum);
    }
}

void add(std::byte* memory, const std::byte* operand, std::size_t total, std::size_t bytes) {
    switch (element_of(bytes)) {
        case 8:
            return add_as<std::uint64_t>(memory, operand, total);
        case 4:
            return add_as<std::uint32_t>(memory, operand, total);
        case 2:
            return add_as<std::uint16_t>(memory, operand, total);
        default:
            return add_as<std::uint8_t>(memory, operand, total);
    }
}

struct Put final : Operation {
    bool sends() const override { return true; }
    bool fetches() const override { return false; }
    void issue(const Transfer& t) const override {
        MPI_Put(t.operand, t.bytes, MPI_BYTE, t.target, t.at, t.bytes, MPI_BYTE, t.win);
    }
    void apply(std::byte* memory, const std::byte* operand, std::size_t total, std::size_t) const override {
        std::memcpy(memory, operand, total);
    }
};

struct Get final : Operation {
    bool sends() const override { return false; }
    bool fetches() const override { return true; }
    void issue(const Transfer& t) const override {
        MPI_Get(t.result, t.bytes, MPI_BYTE, t.target, t.at, t.bytes, MPI_BYTE, t.win);
    }
    void apply(std::byte*, const std::byte*, std::size_t, std::size_t) const override {}
};

struct Sum : Operation {
    bool sends() const override { return true; }
    void apply(std::byte* memory, const std::byte* operand, std::size_t total, std::size_t bytes) const override {
        add(memory, operand, total, bytes);
    }
};

struct Accumulate final : Sum {
    bool fetches() const override { return false; }
    void issue(const Transfer& t) const override {
        const std::size_t width = element_of(static_cast<std::size_t>(t.bytes));
        const int count = t.bytes / static_cast<int>(width);
        const MPI_Datatype type = unsigned_of(width);
        MPI_Accumulate(t.operand, count, type, t.target, t.at, count, type, MPI_SUM, t.win);
    }
};

struct GetAccumulate final : Sum {
    bool fetches() const override { return true; }
    void issue(const Transfer& t) const override {
        const std::size_t width = element_of(static_cast<std::size_t>(t.bytes));
        const int count = t.bytes / static_cast<int>(width);
        const MPI_Datatype type = unsigned_of(width);
        MPI_Get_accumulate(t.operand, count, type, t.result, count, type, t.target, t.at, count, type, MPI_SUM, t.win);
    }
};

struct FetchAndOp final : Sum {
    bool fetches() const override { return true; }
    void issue(const Transfer& t) const override {
        MPI_Fetch_and_op(t.operand, t.result, MPI_UINT64_T, t.target, t.at, MPI_SUM, t.win);
    }
};

// The operand is the new value; the value to compare with lies behind it. It is what the memory holds in every other
// round only, so that a swap that ignores it is found.
struct CompareAndSwap final : Operation {
    static constexpr std::size_t kWidth = sizeof(std::uint64_t);

    bool sends() const override { return true; }
    bool fetches() const override { return true; }
    void issue(const Transfer& t) const override {
        MPI_Compare_and_swap(t.operand, t.operand + kWidth, t.result, MPI_UINT64_T, t.target, t.at, t.win);
    }
    void complete(std::byte* operand, const std::byte* memory, unsigned long long round) const override {
        std::memcpy(operand + kWidth, memory, kWidth);
        if (round % 2 != 0) operand[2 * kWidth - 1] ^= std::byte{1};
    }
    void apply(std::byte* memory, const std::byte* operand, std::size_t, std::size_t) const override {
        if (std::memcmp(memory, operand + kWidth, kWidth) == 0) std::memcpy(memory, operand, kWidth);
    }
};

const Put the_put;
const Get the_get;
const Accumulate the_accumulate;
const GetAccumulate the_get_accumulate;
const FetchAndOp the_fetch_and_op;
const CompareAndSwap the_compare_and_swap;

}  // namespace

const Operation& kPut = the_put;
const Operation& kGet = the_get;
const Operation& kAccumulate = the_accumulate;
const Operation& kGetAccumulate = the_get_accumulate;
const Operation& kFetchAndOp = the_fetch_and_op;
const Operation& kCompareAndSwap = the_compare_and_swap;

const Operation& operation_of(Kind kind) {
    return kind == Kind::put ? kPut : kind == Kind::get ? kGet : kAccumulate;
}

}  // namespace osu
