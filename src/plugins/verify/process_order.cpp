// Reads and writes the clocks.
// Build: osc_verify_core
#include "plugins/verify/process_order.h"

#include <algorithm>
#include <type_traits>

namespace osc::check {
namespace {

static_assert(std::is_trivially_copyable_v<RemoteAccess>);

// Not 0. Keys of a row ascend.
std::uint64_t key_of(std::uint64_t row, std::uint64_t number) {
    return (row << 40) + number;
}

}  // namespace

// The parts of a part, one behind the other; returns where it ends.
std::size_t ProcessOrder::lay_out(std::byte* from, std::uint32_t processes, Part& part) {
    std::size_t at = 0;
    const auto words = [&](std::size_t count) {
        auto* const found = reinterpret_cast<Word*>(from + at);
        at += count * sizeof(Word);
        return found;
    };
    part.clock = words(processes);
    part.post = words(processes);
    part.collectives = words(kCollectives * (1 + processes));
    part.locks = words(2 * kLocks * processes);
    part.shown = words(1);
    part.log = reinterpret_cast<Shown*>(from + at);
    return at + kShown * sizeof(Shown);
}

std::size_t ProcessOrder::bytes_of_part(std::uint32_t processes) {
    Part none{};
    return lay_out(nullptr, processes, none);
}

ProcessOrder::ProcessOrder(std::uint32_t me, std::vector<std::byte*> parts)
    : me_(me), parts_(parts.size()), mine_(parts.size()), read_(parts.size()) {
    for (std::size_t i = 0; i < parts.size(); ++i)
        lay_out(parts[i], processes(), parts_[i]);
}

std::uint64_t ProcessOrder::release() {
    ++mine_[me_];
    for (std::uint32_t i = 0; i < processes(); ++i)
        parts_[me_].clock[i].store(mine_[i], std::memory_order_release);
    return mine_[me_];
}

// Each value is one that the clock had, or a later one.
void ProcessOrder::join(const Word* clock) {
    for (std::uint32_t i = 0; i < processes(); ++i)
        if (i != me_) mine_[i] = std::max(mine_[i], clock[i].load(std::memory_order_acquire));
}

void ProcessOrder::acquire(std::uint32_t process) {
    if (process != me_) join(parts_[process].clock);
}

// A place is that of many collectives. The key tells which one it has: row and number.
ProcessOrder::Word* ProcessOrder::collective_of(std::uint32_t process, std::uint64_t row, std::uint64_t number) const {
    return parts_[process].collectives + (row * 37 + number) % kCollectives * (1 + processes());
}

std::uint64_t ProcessOrder::enter(std::uint64_t row) {
    release();
    const std::uint64_t number = ++collectives_[row];
    Word* const kept = collective_of(me_, row, number);
    kept->store(0, std::memory_order_seq_cst);
    for (std::uint32_t i = 0; i < processes(); ++i)
        kept[1 + i].store(mine_[i], std::memory_order_seq_cst);
    kept->store(key_of(row, number), std::memory_order_seq_cst);
    return number;
}

// A process that has not entered yet orders nothing: its place has a collective before this one. Where the place has
// another one's clock, the process's last release counts.
void ProcessOrder::leave(std::uint64_t row, std::uint64_t number, std::span<const std::uint32_t> processes) {
    for (const std::uint32_t process : processes) {
        if (process == me_) continue;
        const Word* const kept = collective_of(process, row, number);
        const std::uint64_t found = kept->load(std::memory_order_seq_cst);
        if (found == key_of(row, number))
            join(kept + 1);  // a clock that is written now is a later one
        else if (found < key_of(row, 1) || found > key_of(row, number))
            acquire(process);
    }
}

std::uint64_t ProcessOrder::post() {
    const std::uint64_t number = release();
    for (std::uint32_t i = 0; i < processes(); ++i)
        parts_[me_].post[i].store(mine_[i], std::memory_order_release);
    return number;
}

// A post of another window, or for another group, that comes after the awaited one has a later clock.
void ProcessOrder::acquire_post(std::uint32_t process) {
    if (process != me_) join(parts_[process].post);
}

// Of a window that shares its lock with another one, too much is acquired.
ProcessOrder::Word* ProcessOrder::lock_of(std::uint64_t window, std::uint32_t target, bool exclusive) const {
    return parts_[target].locks + (2 * (window % kLocks) + (exclusive ? 0 : 1)) * processes();
}

void ProcessOrder::acquire_lock(std::uint64_t window, std::uint32_t target, bool exclusive) {
    join(lock_of(window, target, true));
    if (exclusive) join(lock_of(window, target, false));
}

void ProcessOrder::release_lock(std::uint64_t window, std::uint32_t target, bool exclusive) {
    Word* const lock = lock_of(window, target, exclusive);
    for (std::uint32_t i = 0; i < processes(); ++i) {
        std::uint64_t found = lock[i].load(std::memory_order_relaxed);
        while (found < mine_[i] && !lock[i].compare_exchange_weak(found, mine_[i], std::memory_order_acq_rel)) {
        }
    }
}

void ProcessOrder::show(const RemoteAccess& access) {
    Part& part = parts_[me_];
    const std::uint64_t number = part.shown->load(std::memory_order_relaxed);
    Shown& one = part.log[number % kShown];
    one.number.exchange(0, std::memory_order_acq_rel);  // before what follows
    std::memcpy(&one.access, &access, sizeof access);
    one.number.store(number + 1, std::memory_order_release);
    part.shown->store(number + 1, std::memory_order_release);
}

}  // namespace osc::check
