// Large allocations from a range of shared memory that libosc has reserved (OSC_SHARE_HEAP): which parts of the range
// are taken, and by pieces of which length. Owns that bookkeeping, not the memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "shm/spans.h"

namespace osc::heap {

/// Makes [address, address + bytes) read as zero and returns its memory to the system. Whole pages.
using Discard = void (*)(void* address, std::size_t bytes);

/// Pieces of one range, first fit, in whole pages: no two pieces share one. The pages of freed pieces are kept for the
/// next ones, up to a limit, because fresh pages cost a fault each. Thread-safe, except before_fork() and after_fork().
class SharedHeap {
  public:
    /// Serves [base, base + bytes), whole pages that read as zero, and keeps at most `keep` bytes of freed memory.
    SharedHeap(void* base, std::size_t bytes, std::size_t page, std::size_t keep, Discard discard);
    SharedHeap(const SharedHeap&) = delete;
    SharedHeap& operator=(const SharedHeap&) = delete;

    /// A piece of at least `bytes` bytes at a multiple of `alignment` (a power of two) and of the page size, which
    /// reads as zero if `zero`. Null if no free part is long enough.
    void* allocate(std::size_t bytes, std::size_t alignment, bool zero);

    /// Whether the address lies in the range, in a piece or not.
    bool contains(const void* address) const { return reinterpret_cast<std::uintptr_t>(address) - base_ < bytes_; }

    /// Bytes of the piece that starts at `piece`, whole pages; 0 if none starts there.
    std::size_t length(const void* piece) const;

    /// Makes the piece as long as `bytes` need without moving it. False if the memory behind it is taken, or no piece
    /// starts there; or if some of it is kept and some not.
    bool resize(void* piece, std::size_t bytes);

    /// Frees the piece; false if none starts there.
    bool release(void* piece);

    /// Around fork(): no other thread is inside meanwhile, but other handlers of fork() in this one may be. The second
    /// one in both processes.
    void before_fork() {
        mutex_.lock();
        s_forks = true;
    }
    void after_fork() {
        s_forks = false;
        mutex_.unlock();
    }

  private:
    // Locks the mutex, unless this thread has it for a fork.
    class Guard {
      public:
        explicit Guard(const SharedHeap& heap) : lock_(heap.mutex_, std::defer_lock) {
            if (!s_forks) lock_.lock();
        }

      private:
        std::unique_lock<std::mutex> lock_;
    };

    void give_back(std::uintptr_t start, std::size_t bytes);
    void discard_kept();
    void show_in_dumps(std::uintptr_t end);
    std::size_t whole_pages(std::size_t bytes) const { return (bytes + page_ - 1) / page_ * page_; }

    std::uintptr_t base_;
    std::size_t bytes_;
    std::size_t page_;
    std::size_t keep_;
    Discard discard_;
    std::uintptr_t dumped_;  // core files have the range up to here
    mutable std::mutex mutex_;
    // Its place is known when the library is loaded, so that no access allocates.
    static inline thread_local bool s_forks __attribute__((tls_model("initial-exec"))) = false;
    shm::FreeSpans free_;  // by address; they read as zero
    shm::FreeSpans kept_;  // free too, with old contents
    std::size_t kept_bytes_ = 0;
    std::map<std::uintptr_t, std::size_t> pieces_;  // address -> bytes
};

}  // namespace osc::heap
