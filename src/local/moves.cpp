// Collects puts and gets.
#include "local/moves.h"

#include <cstring>
#include <utility>

namespace osc::cma {

void Moves::put(std::uint64_t address, const void* from, std::size_t bytes) {
    std::byte* const copy = copies_.data() + copied_;
    std::memcpy(copy, from, bytes);
    copied_ += bytes;
    writes_.add(address, copy, bytes);
    if (writes_.pieces() == kMost || copied_ > copies_.size() - kMostPut) perform_puts();
}

void Moves::get(std::uint64_t address, void* to, std::size_t bytes) {
    reads_.add(address, to, bytes);
    if (reads_.pieces() == kMost) perform_gets();
}

void Moves::perform_puts() {
    if (const int error = writes_.finish(); error_ == 0) error_ = error;
    copied_ = 0;
}

void Moves::perform_gets() {
    if (const int error = reads_.finish(); error_ == 0) error_ = error;
}

int Moves::finish() {
    perform_puts();
    perform_gets();
    if (error_ != 0) {  // a Batch keeps its error
        writes_ = Batch(Direction::Write, pid_);
        reads_ = Batch(Direction::Read, pid_);
    }
    return std::exchange(error_, 0);
}

}  // namespace osc::cma
