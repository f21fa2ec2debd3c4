// Collects puts and gets.
#include "transport/cma/moves.h"

#include <cstring>
#include <utility>

namespace osc::cma {

void Moves::put(std::uint64_t address, const void* from, std::size_t bytes) {
    std::byte* const copy = copies_[puts_].data();
    std::memcpy(copy, from, bytes);
    writes_.add(address, copy, bytes);
    if (++puts_ == kMost) perform_puts();
}

void Moves::get(std::uint64_t address, void* to, std::size_t bytes) {
    reads_.add(address, to, bytes);
    if (++gets_ == kMost) perform_gets();
}

void Moves::perform_puts() {
    if (const int error = writes_.finish(); error_ == 0) error_ = error;
    puts_ = 0;
}

void Moves::perform_gets() {
    if (const int error = reads_.finish(); error_ == 0) error_ = error;
    gets_ = 0;
}

int Moves::finish() {
    if (puts_ > 0) perform_puts();
    if (gets_ > 0) perform_gets();
    if (error_ != 0) {  // a Batch keeps its error
        writes_ = Batch(Direction::Write, pid_);
        reads_ = Batch(Direction::Read, pid_);
    }
    return std::exchange(error_, 0);
}

}  // namespace osc::cma
