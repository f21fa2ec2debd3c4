// Lists in pages of their own, which call no malloc: MappedArray, and PlaceList, the list of adopted places.
#pragma once

#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace osc::shm {

/// An array in pages of its own. It neither calls malloc nor the C library's mmap, so it can be used inside
/// replacements of those functions and between fork and exec, and its storage never lies on memory that a window has
/// adopted. Not thread-safe.
template <class T>
class MappedArray {
    static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

  public:
    MappedArray() = default;
    ~MappedArray() { release(); }
    MappedArray(const MappedArray&) = delete;
    MappedArray& operator=(const MappedArray&) = delete;

    /// False if the system has no memory; the array is unchanged then.
    bool push(const T& value) {
        if (size_ == room_ && !grow()) return false;
        items_[size_++] = value;
        return true;
    }
    void clear() { size_ = 0; }
    T* begin() { return items_; }
    T* end() { return items_ + size_; }
    const T* begin() const { return items_; }
    const T* end() const { return items_ + size_; }
    std::size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }
    T& back() { return items_[size_ - 1]; }

  private:
    void release() {
        if (items_ != nullptr) ::syscall(SYS_munmap, items_, room_ * sizeof(T));
    }
    bool grow() {
        const std::size_t room = room_ == 0 ? kFirstBytes / sizeof(T) : 2 * room_;
        const long fresh =
            ::syscall(SYS_mmap, nullptr, room * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
        if (fresh == -1) return false;
        T* const items = reinterpret_cast<T*>(fresh);
        std::copy(begin(), end(), items);
        release();
        items_ = items;
        room_ = room;
        return true;
    }
    static constexpr std::size_t kFirstBytes = 4096;
    static_assert(sizeof(T) <= kFirstBytes);
    T* items_ = nullptr;
    std::size_t size_ = 0;
    std::size_t room_ = 0;
};

/// A range of addresses.
struct Place {
    std::uintptr_t first;
    std::uintptr_t end;
};

/// Address ranges that threads search without a lock, while another thread replaces them. A replacement of malloc may
/// search them while it holds its own locks, and may wait for those in a handler of fork().
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
