// Free ranges of a file's offsets: first fit, neighbours joined.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace osc::shm {

/// A set of disjoint ranges of offsets. Not thread-safe: the arena's mutex protects it. A function that throws
/// std::bad_alloc has changed nothing.
class FreeSpans {
  public:
    /// Removes `bytes` bytes that start at a multiple of `alignment` (any positive number) and returns the start:
    /// the lowest that fits. Nothing if no range is long enough.
    std::optional<std::uint64_t> take(std::uint64_t bytes, std::uint64_t alignment);

    /// Removes [start, start + bytes); false if it is not all free.
    bool take_at(std::uint64_t start, std::uint64_t bytes);

    /// Removes the lowest range: start and bytes. Nothing if there is none.
    std::optional<std::pair<std::uint64_t, std::uint64_t>> take_first();

    /// Adds [start, start + bytes), which must not overlap a free range; joins it with its neighbours.
    void give(std::uint64_t start, std::uint64_t bytes);

  private:
    using Ranges = std::map<std::uint64_t, std::uint64_t>;  // start -> bytes
    void cut(Ranges::iterator range, std::uint64_t start, std::uint64_t bytes);

    Ranges free_;  // no two ranges touch
};

}  // namespace osc::shm
