// Small puts and gets of several calls on the memory of one process that is not mapped here, moved together: a call of
// the system costs as much as the copies of dozens of them.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "local/cma.h"

namespace osc::cma {

/// One thread at a time.
class Moves {
  public:
    static constexpr std::size_t kMostPut = 64;    // bytes: a put is copied
    static constexpr std::size_t kMostGet = 1024;  // bytes: longer ones gain little

    explicit Moves(pid_t pid) : pid_(pid), writes_(Direction::Write, pid), reads_(Direction::Read, pid) {}

    pid_t pid() const { return pid_; }
    /// Collects a move; performs those of its direction when there are many. `to` is in use until finish().
    void put(std::uint64_t address, const void* from, std::size_t bytes);
    void get(std::uint64_t address, void* to, std::size_t bytes);
    /// Performs all moves. Returns 0 or the first errno since the last finish(); moves behind an error are lost.
    int finish();

  private:
    static constexpr std::size_t kMost = Batch::kPieces - 1;  // so that Batch::add() performs none

    void perform_puts();
    void perform_gets();

    const pid_t pid_;
    int error_ = 0;
    std::size_t copied_ = 0;  // bytes of copies_
    Batch writes_;
    Batch reads_;
    std::array<std::byte, kMost * kMostPut> copies_;  // without gaps, so that adjacent puts are one piece
};

}  // namespace osc::cma
