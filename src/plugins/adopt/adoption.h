// Adoption: private memory of this process becomes part of its arena, in place, so that peers reach it by load and
// store. The owner's addresses and contents stay; only the pages behind them are others.
//
// Each adoption gets a slot of file offsets that is wider than the address space. Memory at address A lies at offset
// kAdoptedOffset + slot * kSlotBytes + A. So a mapping that mremap() moves and grows never reaches the offsets of
// another adoption, and a window that continues an adopted piece continues its slot. Which addresses are adopted now is
// read from the kernel (vm_areas.h) when it matters, because the program may unmap or move its memory; the places kept
// here only say which calls of the program may concern adopted memory.
//
// Nothing here calls malloc or a patched function of the C library while it has the mutex: a replacement of malloc may
// call munmap or madvise while it holds its locks, and so may the library that patched the function. For the same
// reason meets(), sweep(), release(), discard() and remap() do not wait for the mutex, which a fork keeps while it
// waits for the locks of malloc: the kernel's list says what is adopted, and a sweep is left to the thread that has the
// mutex.
#pragma once

#include <pthread.h>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "base/helper_thread.h"
#include "plugins/adopt/place_list.h"
#include "shm/arena.h"
#include "shm/control.h"

namespace osc::shm {

struct VmArea;

/// Addresses of user programs, unless they ask for higher ones.
inline constexpr std::uint64_t kAddresses = std::uint64_t{1} << 47;
/// An address, and a mapping that grows from there by all of the address space.
inline constexpr std::uint64_t kSlotBytes = 2 * kAddresses;
inline constexpr std::uint64_t kSlots = (kAdoptedEnd - kAdoptedOffset) / kSlotBytes;

/// While an object of this class exists, signals (base::block_signals) wait in the calling thread, and a cancellation
/// waits too. free() and munmap() are no cancellation points, though what libosc does in them makes system calls that
/// are. Objects nest; the thread that made one destroys it.
class Undisturbed {
  public:
    Undisturbed() : state_(begin()) {}
    ~Undisturbed() { end(state_); }
    Undisturbed(const Undisturbed&) = delete;
    Undisturbed& operator=(const Undisturbed&) = delete;

    /// The same for sections that no scope encloses.
    struct State {
        sigset_t signals;
        int cancellation;
    };
    static State begin() {
        State state{base::block_signals(), 0};
        ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state.cancellation);
        return state;
    }
    static void end(const State& state) {
        int now = 0;
        ::pthread_setcancelstate(state.cancellation, &now);
        base::restore_signals(state.signals);
    }

  private:
    State state_;
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
        bool edges = false;     // nothing but shared memory lies beside the range on its first and last page
        bool alone = false;     // refuse while a thread runs that is neither the caller nor libosc's nor the host's
        /// Why nothing may be copied now, or null. Asked only if there is something to copy.
        std::function<const char*()> forbids;
        /// Whether the copy of the range is worth its cost. Asked if nothing but the memory's flags may forbid it.
        std::function<bool(std::uintptr_t first, std::uintptr_t end)> pays;
        /// Whether others access a range now by other means (process_vm_*), so that it must stay private.
        std::function<bool(std::uintptr_t first, std::uintptr_t end)> in_use;
    };

    /// Makes the whole pages of [base, base + bytes) shared where that is possible, and returns the first longest part
    /// of the range that is shared now, adopted earlier, with its first and last bytes, or by this call; an empty part
    /// if there is none. `why`: one
    /// phrase if something stays private although it has whole pages, else empty. Signals wait during the copies.
    SharedPart adopt(const void* base, std::size_t bytes, const Limits& limits, std::string& why);

    /// Whether [address, address + bytes) may meet adopted memory: false if it lies outside of all of it. Takes no
    /// lock.
    static bool near(const void* address, std::size_t bytes) {
        const auto first = reinterpret_cast<std::uintptr_t>(address);
        return __builtin_expect(first < s_hull_end.load(std::memory_order_relaxed) &&
                                    first + bytes > s_hull_first.load(std::memory_order_relaxed),
                                0);
    }
    /// Whether [address, address + bytes) meets adopted memory.
    static bool meets(const void* address, std::size_t bytes) {
        return near(address, bytes) && mine().is_adopted(address, bytes);
    }

    /// Returns the pages of adopted memory that is not mapped any more. Called after the program has unmapped memory.
    /// If another thread has the mutex, that thread does it as soon as it unlocks, after a fork for example.
    void sweep();

    /// Makes the whole adopted pages in [address, address + bytes) private again, with undefined contents. Called
    /// before the program's allocator gets the memory back.
    void release(const void* address, std::size_t bytes);

    /// Finds the first adopted part of [address, address + bytes), both multiples of the page size, and makes it read
    /// as zero, as MADV_DONTNEED does to private memory. An empty part if there is none.
    SharedPart discard(const void* address, std::size_t bytes);

    /// mremap() of a range that meets adopted memory. What moves or grows becomes private memory with the same content,
    /// as it would be without the adoption.
    void* remap(void* address, std::size_t bytes, std::size_t new_bytes, int flags, void* wanted);

    /// Maps `bytes` bytes, rounded up to pages, of fresh shared memory, which read as zero, at addresses that the
    /// kernel chooses. They count as adopted memory until the caller unmaps them. The first call opens the arena's
    /// file, unless adopt() has done so: it allocates and takes the arena's mutex, later calls do neither. Null with
    /// errno set if the system refuses; ENOTSUP where pages must be allocated before they are touched, and in a child
    /// of fork(); EAGAIN in a handler of fork().
    void* reserve(std::size_t bytes);

    /// Returns whole pages of reserved memory to the system; they read as zero then. In a child of fork() only the
    /// child's own pages go. False with errno set if the system refuses; EAGAIN in a handler of fork(). Calls no
    /// malloc.
    bool discard_reserved(void* address, std::size_t bytes);

    /// Notes that `processes` processes of the node have windows together: all may fork at the same time.
    void expect_forks_of(std::uint64_t processes) {
        std::uint64_t most = processes_.load();
        while (most < processes && !processes_.compare_exchange_weak(most, processes)) {
        }
    }

    /// Around fork(): the child gets private copies, or, if memory is short, the file's pages until it stores into
    /// them, and this process prints a line.
    static void before_fork();
    static void after_fork_in_parent();
    static void after_fork_in_child();

  private:
    // Locks the mutex in an undisturbed thread: a signal handler may fork, and a cancelled thread would keep the mutex.
    class Inside {
      public:
        explicit Inside(Adoption& adoption) : adoption_(adoption) { adoption_.lock(); }
        ~Inside() { adoption_.unlock(); }
        Inside(const Inside&) = delete;
        Inside& operator=(const Inside&) = delete;

      private:
        const Undisturbed undisturbed_;
        Adoption& adoption_;
    };
    struct Piece {
        std::uintptr_t first;
        std::uintptr_t end;
        bool sparse;  // pages that were never touched read as zero
    };
    struct Survey {
        SharedPart longest;
        MappedArray<Piece> adoptable;
        unsigned long areas = 0;  // of the process
        bool complete = false;    // the list of areas, and this object
    };
    // Why memory stays private.
    struct Refusal {
        const char* reason = nullptr;
        int error = 0;  // errno, or 0
        explicit operator bool() const { return reason != nullptr; }
    };
    struct Exchanged {
        MappedArray<Place> places;
        std::uint64_t shift = 0;
        Refusal rest;  // why the rest stays private
    };
    struct Offsets {
        std::uint64_t first;
        std::uint64_t end;
    };
    struct Copy {
        std::uintptr_t first;
        std::size_t bytes;
        std::uint64_t offset;
        int protection;
        void* address;  // null: no memory for a copy
    };
    void lock();
    void unlock();
    void sweep_if_due();
    Refusal open_file(int fd);
    bool owned() const;
    bool is_own(const VmArea& area) const;
    bool list_own(MappedArray<Copy>& found) const;
    void survey(const Place& pages, const Place& touched, Survey& found) const;
    bool is_whole(std::uintptr_t first, std::uintptr_t end, SharedPart& part) const;
    static const char* refusal(const Survey& found, const Place& pages, const Limits& limits, bool& huge);
    void exchange(const Place& pages, int fd, Exchanged& done);
    std::uint64_t choose_shift(const Survey& found);
    bool is_free(std::uint64_t first, std::uint64_t end) const;
    std::uint64_t free_slot();
    Refusal copy_in(const Piece& piece, std::uint64_t shift, std::uintptr_t& done);
    bool swap_chunk(const Piece& chunk, std::uint64_t shift);
    void announce(const Place& place, std::uint64_t shift, bool huge) const;
    bool drop_pages(std::uint64_t offset, std::size_t bytes);
    void drop_gap(std::uint64_t from, std::uint64_t to);
    std::size_t file_bytes() const;
    bool copy_out(std::uint64_t offset, std::size_t bytes, void* to) const;
    bool is_adopted(const void* address, std::size_t bytes) const;
    bool sweep_locked();
    SharedPart first_own(std::uintptr_t first, std::uintptr_t end) const;
    void* move_away(std::uintptr_t first, std::size_t bytes, std::size_t new_bytes, int flags, void* wanted);
    bool copy_areas(std::uintptr_t first, std::size_t bytes, std::uintptr_t to, int& last_protection) const;
    void copy_for_child(bool fits);
    void end_fork();
    void map_copies(std::uintptr_t first, std::uintptr_t end, int protection, std::uint64_t offset) const;
    void update_hull();

    Arena& arena_;
    std::mutex mutex_;
    std::atomic<int> sweep_due_{0};  // 1: the thread that unlocks the mutex sweeps
    int fd_ = -1;                    // the arena's file, once something was adopted
    dev_t device_ = 0;
    ino_t inode_ = 0;
    // One byte, on a page that the system clears in a forked child, which must not touch the file's pages. Null before
    // the first adoption.
    std::atomic<volatile char*> owner_{nullptr};
    MappedArray<Place> places_;                 // adopted memory, as of the last change that was seen, in order
    MappedArray<Offsets> used_;                 // offsets that were mapped at the last sweep, in order
    std::uint64_t next_slot_ = 0;               // where the search for a free one starts
    std::uint64_t reserved_shift_ = kNoOffset;  // the slot of all reserved memory
    MappedArray<Copy> copies_;                  // during a fork
    bool copies_complete_ = true;
    std::atomic<std::uint64_t> processes_{1};  // of the node
    Undisturbed::State forking_{};             // of the thread that forks, before it did
    PlaceList known_;                          // places_, for searches without the mutex
    // The hull of the places. Static, because free() asks before any adoption was made.
    static inline std::atomic<std::uintptr_t> s_hull_first{~std::uintptr_t{0}};
    static inline std::atomic<std::uintptr_t> s_hull_end{0};
    static inline thread_local bool s_inside = false;   // this thread has the mutex
    static inline thread_local bool s_forking = false;  // before_fork() has locked the mutex
};

}  // namespace osc::shm
