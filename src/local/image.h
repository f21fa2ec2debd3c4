// A copy of parts of another process's memory, read with the short gaps between the parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "local/cma.h"

namespace osc::cma {

/// One thread at a time.
class Image {
  public:
    /// A piece of a system call costs 343 ns, and 4 KiB of a long piece 235 ns, or 380 ns with their share of a call
    /// for 32 KiB (the slowest machine measured; others differ by the same factor). So a gap of half a page costs less
    /// than a piece in any call, and is read. It lies in pages that have data, so it has no hole.
    static constexpr std::uint64_t kLongestGap = 2048;

    static constexpr std::size_t kRoom = std::size_t{64} << 10;
    /// kRoom bytes of the calling thread's, for one use at a time; none if it has no memory for them.
    static std::span<std::byte> room();

    /// Of memory of process `pid`, in `room`.
    Image(pid_t pid, std::span<std::byte> room) : room_(room), reads_(Direction::Read, pid) {}

    /// Where read() copies the bytes [address, address + bytes) to; null if there is no room. No address is lower than
    /// the one before it; parts may overlap.
    std::byte* place(std::uint64_t address, std::size_t bytes) {
        const std::uint64_t end = address + bytes;
        if (used_ == 0 || address > end_ + kLongestGap) {
            if (bytes > room_.size() - used_) return nullptr;
            collect();
            begin_ = end_ = address;
        }
        std::byte* const copy = room_.data() + used_ + static_cast<std::ptrdiff_t>(address - end_);
        if (end <= end_) return copy;
        if (end - end_ > room_.size() - used_) return nullptr;
        used_ += end - end_;
        end_ = end;
        return copy;
    }
    /// Lets read() copy bytes to memory of the program.
    void add(std::uint64_t address, std::byte* to, std::size_t bytes) { reads_.add(address, to, bytes); }
    /// Returns 0 or errno.
    int read() {
        collect();
        return reads_.finish();
    }

  private:
    // The span that has been placed last.
    void collect() { reads_.add(begin_, room_.data() + used_ - (end_ - begin_), end_ - begin_); }

    std::span<std::byte> room_;
    std::size_t used_ = 0;
    std::uint64_t begin_ = 0;  // of the span that grows
    std::uint64_t end_ = 0;
    PieceList reads_;
};

}  // namespace osc::cma
