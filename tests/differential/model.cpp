// The effect of each operation on the bytes of a window, and the names of operations.
#include <cstring>

#include "plan.h"

namespace diff {
namespace {

void forget(Bytes& bytes, std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i)
        bytes.known[i] = 0;
}

// Copies the data bytes of an element; the gap of a pair stays.
void copy_data(const Basic& basic, const unsigned char* from, const unsigned char* known, Bytes& to, std::size_t at) {
    for (int p = 0; p < basic.piece_count; ++p) {
        const auto [offset, bytes] = basic.pieces[p];
        std::memcpy(to.value.data() + at + offset, from + offset, bytes);
        for (std::size_t i = offset; i < offset + bytes; ++i)
            to.known[at + i] = known != nullptr ? known[i] : 1;
    }
}

// The bytes of a long double behind its 80 bits are unspecified after arithmetic.
void forget_vague(const Basic& basic, Bytes& bytes, std::size_t at) {
    if (basic.vague_to == 0) return;
    const std::size_t parts = basic.group == Group::Complex ? 2 : 1;
    for (std::size_t part = 0; part < parts; ++part)
        forget(bytes, at + part * basic.vague_to + basic.vague_from, at + (part + 1) * basic.vague_to);
}

void forget_gap(const Basic& basic, Bytes& bytes, std::size_t at) {
    if (basic.piece_count == 1) return;
    const auto& [first, second] = basic.pieces;
    forget(bytes, at + first.offset + first.bytes, at + second.offset);
    forget(bytes, at + second.offset + second.bytes, at + basic.width);
}

}  // namespace

void apply(Operation& op, Bytes& memory, bool host_safe) {
    const Basic& basic = *op.basic;
    if (op.fills_here() || op.fetches()) op.result = Bytes(op.elements() * basic.width);
    for (std::size_t i = 0; i < op.elements(); ++i) {
        const auto at = static_cast<std::size_t>(op.start + op.there.at[i]);
        const std::size_t flat = i * basic.width;
        if (op.fills_here()) {
            copy_data(basic, memory.value.data() + at, memory.known.data() + at, op.result, flat);
            if (host_safe) forget_vague(basic, op.result, flat);
            continue;
        }
        const unsigned char* from = op.data.data() + flat;
        const bool put =
            op.call == Call::Put || op.call == Call::PutC || op.call == Call::Rput || op.call == Call::RputC;
        if (put) {
            copy_data(basic, from, nullptr, memory, at);
        } else {
            if (op.fetches()) {
                copy_data(basic, memory.value.data() + at, memory.known.data() + at, op.result, flat);
                forget_vague(basic, op.result, flat);
            }
            if (op.call == Call::CompareAndSwap) {
                if (std::memcmp(memory.value.data() + at, op.compare.data(), basic.width) == 0)
                    copy_data(basic, from, nullptr, memory, at);
            } else if (op.red == Red::Replace) {
                copy_data(basic, from, nullptr, memory, at);
                forget_vague(basic, memory, at);
            } else if (op.red != Red::NoOp) {
                basic.combine(op.red, memory.value.data() + at, from);
                forget_vague(basic, memory, at);
            }
        }
        if (host_safe) {  // the host copies gaps, and only 80 bits of a long double
            forget_gap(basic, memory, at);
            forget_vague(basic, memory, at);
        }
    }
}

bool Operation::fetches() const {
    return call == Call::GetAccumulate || call == Call::GetAccumulateC || call == Call::RgetAccumulate ||
           call == Call::RgetAccumulateC || call == Call::FetchAndOp || call == Call::CompareAndSwap;
}

const char* name_of(Call call) {
    static const char* const names[] = {"Put",           "Get",
                                        "Accumulate",    "Get_accumulate",
                                        "Put_c",         "Get_c",
                                        "Accumulate_c",  "Get_accumulate_c",
                                        "Rput",          "Rget",
                                        "Raccumulate",   "Rget_accumulate",
                                        "Rput_c",        "Rget_c",
                                        "Raccumulate_c", "Rget_accumulate_c",
                                        "Fetch_and_op",  "Compare_and_swap"};
    return names[static_cast<std::size_t>(call)];
}

const char* name_of(Sync sync) {
    static const char* const names[] = {"fence",
                                        "fence with asserts",
                                        "pscw",
                                        "lock shared",
                                        "lock exclusive",
                                        "lock_all flush",
                                        "lock_all flush_all",
                                        "lock_all flush_local"};
    return names[static_cast<std::size_t>(sync)];
}

std::string Operation::describe() const {
    const bool reduces = call != Call::CompareAndSwap && !data.empty() && red != Red::Count;
    std::string text = std::string("MPI_") + name_of(call);
    if (reduces && call != Call::Put && call != Call::PutC && call != Call::Rput && call != Call::RputC)
        text += std::string(" ") + name_of(red);
    text += " of " + std::to_string(elements()) + " " + basic->name + " by rank " + std::to_string(origin) + " (" +
            name_of(here.shape) + " x " + std::to_string(here.count);
    if (fetches()) text += std::string(", result ") + name_of(back.shape) + " x " + std::to_string(back.count);
    text += ") on rank " + std::to_string(target) + " at byte " + std::to_string(start) + " (" + name_of(there.shape) +
            " x " + std::to_string(there.count) + ")";
    return text;
}

}  // namespace diff
