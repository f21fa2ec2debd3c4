// A list of address ranges that threads search without a lock, while another thread replaces it. A replacement of
// malloc may search it while it holds its own locks, and may wait for those in a handler of fork().
#pragma once

#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace osc::shm {

/// A range of addresses.
struct Place {
    std::uintptr_t first;
    std::uintptr_t end;
};

/// publish() needs that one thread at a time calls it; meets() is thread-safe. A sequence number, which is odd during a
/// change, says whether a search saw one list. The number does not stay odd: the list lies in memory of this process
/// alone, Adoption publishes while neither a signal handler nor a cancellation can interrupt it, and the child of a
/// fork in the middle of a change owns no adopted memory, so it searches nothing. Storage that the list has outgrown
/// stays mapped, because a search may still read it: together it is smaller than the storage in use.
class PlaceList {
  public:
    /// Replaces the list by `count` places, disjoint and in order. If the system has no memory for them, the list is
    /// one place: all addresses below `all`. Calls no malloc.
    void publish(const Place* places, std::size_t count, std::uintptr_t all) {
        Entry* entries = entries_.load(std::memory_order_relaxed);
        const bool fits = count < room_ || grow(count + 1, entries);
        const std::uint64_t version = version_.load(std::memory_order_relaxed);
        version_.store(version + 1, std::memory_order_relaxed);  // before the entries, which are released
        if (fits)
            for (std::size_t i = 0; i < count; ++i)
                entries[i + 1].set(places[i]);
        else
            entries[1].set({0, all});
        entries[0].set({fits ? count : 1, 0});
        entries_.store(entries, std::memory_order_release);
        version_.store(version + 2, std::memory_order_release);
    }

    /// Whether [first, end) meets a place of the list. Waits only while a change is under way, which takes no lock.
    bool meets(std::uintptr_t first, std::uintptr_t end) const {
        for (;; ::sched_yield()) {
            const std::uint64_t version = version_.load(std::memory_order_acquire);
            if (version % 2 != 0) continue;
            const bool found = search(first, end);
            if (version_.load(std::memory_order_relaxed) == version) return found;
        }
    }

  private:
    struct Entry {
        std::atomic<std::uintptr_t> first;
        std::atomic<std::uintptr_t> end;
        void set(const Place& place) {
            first.store(place.first, std::memory_order_release);
            end.store(place.end, std::memory_order_release);
        }
    };
    static constexpr std::size_t kFirstRoom = 64;

    // The number of places lies in the storage itself, so that no search passes the storage's end.
    bool search(std::uintptr_t first, std::uintptr_t end) const {
        const Entry* const entries = entries_.load(std::memory_order_acquire);
        const std::size_t count = entries[0].first.load(std::memory_order_acquire);
        std::size_t low = 0;
        std::size_t high = count;
        while (low < high) {
            const std::size_t middle = low + (high - low) / 2;
            if (entries[middle + 1].end.load(std::memory_order_acquire) <= first)
                low = middle + 1;
            else
                high = middle;
        }
        return low < count && entries[low + 1].first.load(std::memory_order_acquire) < end;
    }
    bool grow(std::size_t count, Entry*& entries) {
        std::size_t room = room_;
        while (room < count)
            room *= 2;
        const long fresh = ::syscall(SYS_mmap, nullptr, room * sizeof(Entry), PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
        if (fresh == -1) return false;
        entries = reinterpret_cast<Entry*>(fresh);
        room_ = room;
        return true;
    }

    std::array<Entry, kFirstRoom> own_{};  // the first entry has the number of places
    std::atomic<Entry*> entries_{own_.data()};
    std::atomic<std::uint64_t> version_{0};
    std::size_t room_ = kFirstRoom;
};

}  // namespace osc::shm
