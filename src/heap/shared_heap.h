// Large allocations from a range of shared memory that libosc has reserved (OSC_SHARE_HEAP): which parts of the range
// are taken, and by pieces of which length. Owns that bookkeeping, not the memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "transport/shm/spans.h"

namespace osc::heap {

/// Makes [address, address + bytes) read as zero and returns its memory to the system. Whole pages.
using Discard = void (*)(void* address, std::size_t bytes);

/// Pieces of one range, first fit, in whole pages: no two pieces share one. Thread-safe, except before_fork() and
/// after_fork().
class SharedHeap {
  public:
    /// Serves [base, base + bytes), whole pages that read as zero.
    SharedHeap(void* base, std::size_t bytes, std::size_t page, Discard discard);
    SharedHeap(const SharedHeap&) = delete;
    SharedHeap& operator=(const SharedHeap&) = delete;

    /// A piece that reads as zero, of at least `bytes` bytes at a multiple of `alignment` (a power of two) and of the
    /// page size. Null if no free part is long enough.
    void* allocate(std::size_t bytes, std::size_t alignment);

    /// Whether the address lies in the range, in a piece or not.
    bool contains(const void* address) const { return reinterpret_cast<std::uintptr_t>(address) - base_ < bytes_; }

    /// Bytes of the piece that starts at `piece`, whole pages; 0 if none starts there.
    std::size_t length(const void* piece) const;

    /// Makes the piece as long as `bytes` need without moving it; what is added reads as zero. False if the memory
    /// behind it is taken, or no piece starts there.
    bool resize(void* piece, std::size_t bytes);

    /// Frees the piece; false if none starts there.
    bool release(void* piece);

    /// Around fork(): no other thread is inside meanwhile. The second one in both processes.
    void before_fork() { mutex_.lock(); }
    void after_fork() { mutex_.unlock(); }

  private:
    void give_back(std::uintptr_t start, std::size_t bytes);
    std::size_t whole_pages(std::size_t bytes) const { return (bytes + page_ - 1) / page_ * page_; }

    std::uintptr_t base_;
    std::size_t bytes_;
    std::size_t page_;
    Discard discard_;
    mutable std::mutex mutex_;
    shm::FreeSpans free_;                           // by address
    std::map<std::uintptr_t, std::size_t> pieces_;  // address -> bytes
};

}  // namespace osc::heap
