// Freed large pieces that the arena keeps, with their mappings, for the next allocation: mapping, faulting in and
// clearing 40 MiB costs milliseconds, taking a kept piece costs a search of a short list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>

namespace osc::shm {

/// A part of the arena's file and where it is mapped. Both start and end at page boundaries.
struct Mapping {
    std::byte* address = nullptr;
    std::uint64_t offset = 0;
    std::size_t bytes = 0;
};

/// The kept pieces, oldest first. It neither maps nor unmaps. Not thread-safe: the arena's mutex protects it.
class KeptPieces {
  public:
    /// Removes and returns `bytes` bytes (a multiple of the page size) at a multiple of `alignment`, cut from the
    /// smallest piece that has them. What remains of that piece stays if it has at least `least` bytes, and is
    /// returned with the rest otherwise. Nothing if no piece fits, or if the smallest one has more than `most` bytes.
    std::optional<Mapping> take(std::size_t bytes, std::size_t alignment, std::size_t least,
                                std::size_t most = ~std::size_t{0});

    /// Adds a piece as the newest.
    void keep(const Mapping& piece);

    /// Removes and returns the oldest piece; nothing if there is none.
    std::optional<Mapping> oldest();

    /// The sum of the kept pieces' sizes.
    std::size_t bytes() const { return bytes_; }
    std::size_t count() const { return pieces_.size(); }

  private:
    std::list<Mapping> pieces_;
    std::size_t bytes_ = 0;
};

}  // namespace osc::shm
