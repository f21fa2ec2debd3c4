// Adoption: private memory of this process becomes part of its arena, in place, so that peers reach it by load and
// store. The owner's addresses and contents stay; only the pages behind them are others.
//
// Adopted memory at address A lies at offset kAdoptedOffset + A of the arena's file. So neighbours adopted one after
// the other are one piece, and a mapping that mremap() grows gets pages that nothing else uses. Which addresses are
// adopted now is read from the kernel (vm_areas.h) when it matters, because the program may unmap or move its memory;
// the intervals kept here only say which offsets may have pages.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "transport/shm/arena.h"
#include "transport/shm/control.h"

namespace osc::shm {

struct VmArea;

/// Adopted memory follows all other pieces of the arena's file.
inline constexpr std::uint64_t kAdoptedOffset = std::uint64_t{1} << 47;
/// Addresses of user programs, unless they ask for higher ones.
inline constexpr std::uint64_t kAddresses = std::uint64_t{1} << 47;

/// A part of a memory range that lies in the arena's file.
struct SharedPart {
    std::uintptr_t first = 0;
    std::uintptr_t end = 0;
    std::uint64_t offset = kNoOffset;  // of `first` in the file
    explicit operator bool() const { return first < end; }
    std::size_t bytes() const { return end - first; }
};

/// The adopted memory of a process. Thread-safe, but adopt() needs that no other thread stores into the memory.
class Adoption {
  public:
    explicit Adoption(Arena& arena) : arena_(arena) {}
    Adoption(const Adoption&) = delete;
    Adoption& operator=(const Adoption&) = delete;

    /// The process's adoption, over Arena::mine(). Never destroyed.
    static Adoption& mine();

    /// What the caller allows adopt() to do.
    struct Limits {
        std::size_t least = 1;  // bytes: a range with fewer bytes in whole pages stays private
        bool alone = false;     // refuse while a thread runs that is neither the caller nor libosc's nor the host's
        /// Whether others access a range now by other means (process_vm_*), so that it must stay private.
        std::function<bool(std::uintptr_t first, std::uintptr_t end)> in_use;
    };

    /// Makes the whole pages of [base, base + bytes) shared where that is possible, and returns the first longest part
    /// of the range that is shared now, adopted earlier or by this call; an empty part if there is none. `why`: one
    /// phrase if something stays private although it has whole pages, else empty. Signals wait during the copies.
    SharedPart adopt(const void* base, std::size_t bytes, const Limits& limits, std::string& why);

    /// Whether [address, address + bytes) meets adopted memory. Without a lock if it lies outside of all of it.
    static bool meets(const void* address, std::size_t bytes) {
        const auto first = reinterpret_cast<std::uintptr_t>(address);
        return __builtin_expect(first < s_hull_end.load(std::memory_order_relaxed) &&
                                    first + bytes > s_hull_first.load(std::memory_order_relaxed),
                                0) &&
               mine().is_adopted(first, first + bytes);
    }

    /// Returns the pages of adopted memory that is not mapped any more. Called after the program has unmapped memory.
    void sweep();

    /// Makes adopted memory in [address, address + bytes) read as zero, as MADV_DONTNEED does to private memory, and
    /// calls rest(address, bytes) for the parts that are not adopted. Returns 0, or the first result of `rest` that is
    /// not.
    int zero(void* address, std::size_t bytes, const std::function<int(void*, std::size_t)>& rest);

    /// Around fork(): the child gets private copies.
    void before_fork();
    void after_fork_in_parent();
    void after_fork_in_child();

    /// Bytes of adopted memory that may have pages.
    std::uint64_t bytes() const;

  private:
    // Locks the mutex, and lets this thread's own free() and munmap() pass by.
    class Inside {
      public:
        explicit Inside(const Adoption& adoption) : lock_(adoption.mutex_) { s_inside = true; }
        ~Inside() { s_inside = false; }
        Inside(const Inside&) = delete;
        Inside& operator=(const Inside&) = delete;

      private:
        std::lock_guard<std::mutex> lock_;
    };
    struct Piece {
        std::uintptr_t first;
        std::uintptr_t end;
        bool sparse;  // pages that were never touched read as zero
    };
    struct Survey {
        SharedPart longest;
        std::vector<Piece> adoptable;
        long areas = 0;  // of the process
    };
    struct Copy {
        std::uintptr_t first;
        std::size_t bytes;
        std::uint64_t offset;
        int protection;
        void* address;  // null: no memory for a copy
    };
    bool open_file(std::size_t bytes);
    bool is_own(const VmArea& area) const;
    Survey survey(std::uintptr_t first, std::uintptr_t end) const;
    const char* refusal(const Survey& found, std::size_t bytes, const Limits& limits);
    bool copy_in(const Piece& piece, std::string& why);
    bool swap_chunk(const Piece& chunk);
    bool drop_pages(std::uint64_t offset, std::size_t bytes);
    void add(std::uintptr_t first, std::uintptr_t end);
    bool is_adopted(std::uintptr_t first, std::uintptr_t end) const;
    bool overlaps(std::uintptr_t first, std::uintptr_t end) const;
    void sweep_locked();
    void update_hull();

    Arena& arena_;
    mutable std::mutex mutex_;
    int fd_ = -1;  // the arena's file, once something was adopted
    dev_t device_ = 0;
    ino_t inode_ = 0;
    std::map<std::uintptr_t, std::uintptr_t> intervals_;  // first -> end: offsets behind kAdoptedOffset with pages
    std::vector<Copy> copies_;                            // during a fork
    // The hull of the intervals. Static, because free() asks before any adoption was made.
    static inline std::atomic<std::uintptr_t> s_hull_first{~std::uintptr_t{0}};
    static inline std::atomic<std::uintptr_t> s_hull_end{0};
    static inline thread_local bool s_inside = false;
};

}  // namespace osc::shm
