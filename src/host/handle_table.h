// A map from host handles (datatypes, windows) to libosc's objects. Readers take no lock and never wait. Owns the
// slots, not the entries.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

namespace osc::host {

/// An open-addressing hash table whose removed entries keep their key. Hosts reuse handles, so the keys ever seen stay
/// few, and insertions and removals of other keys do not disturb a reader's probing. Outgrown tables stay, because a
/// reader may still use one; sizes double, so together they are smaller than the current one. A constant initialises
/// the object and nothing destroys it: a program may call MPI before libosc's constructors run, and after its
/// destructors.
///
/// A lookup needs its own handle to be valid throughout, which is the user's duty for every MPI call; hence an entry
/// found is current even if other handles are created and freed meanwhile.
template <class T>
class HandleTable {
  public:
    /// The entry of `key` or null. Lock-free.
    [[nodiscard]] T* find(std::uint64_t key) const noexcept {
        const Buckets* slots = current_.load(std::memory_order_acquire);
        if (!slots) return nullptr;
        for (std::size_t i = slots->home(key);; i = (i + 1) & slots->mask) {
            const std::uint64_t seen = slots->slot[i].key.load(std::memory_order_acquire);
            if (seen == key) return slots->slot[i].entry.load(std::memory_order_acquire);
            if (seen == kEmpty) return nullptr;
        }
    }

    /// Enters `entry` unless `key` has one; returns the key's entry. Throws std::bad_alloc.
    T* insert(std::uint64_t key, T* entry) {
        const std::lock_guard lock(mutex_);
        if (T* present = find(key)) return present;
        put(room_for_one(), key, entry);
        return entry;
    }

    /// Removes the entry of `key`, if any, and returns it.
    T* erase(std::uint64_t key) noexcept {
        const std::lock_guard lock(mutex_);
        Buckets* slots = current_.load(std::memory_order_relaxed);
        if (!slots) return nullptr;
        Bucket& slot = probe(*slots, key);
        if (slot.key.load(std::memory_order_relaxed) != key) return nullptr;
        return slot.entry.exchange(nullptr, std::memory_order_acq_rel);
    }

    /// Calls visit(key, entry) for every entry, while no other is entered or removed.
    template <class Visit>
    void for_each(Visit&& visit) const {
        const std::lock_guard lock(mutex_);
        const Buckets* slots = current_.load(std::memory_order_relaxed);
        for (std::size_t i = 0; slots != nullptr && i <= slots->mask; ++i)
            if (T* entry = slots->slot[i].entry.load(std::memory_order_relaxed))
                visit(slots->slot[i].key.load(std::memory_order_relaxed), *entry);
    }

  private:
    static constexpr std::uint64_t kEmpty = 0;  // no host's handle

    struct Bucket {
        std::atomic<std::uint64_t> key{kEmpty};
        std::atomic<T*> entry{nullptr};
    };
    struct Buckets {
        explicit Buckets(std::size_t size) : slot(std::make_unique<Bucket[]>(size)), mask(size - 1) {}
        [[nodiscard]] std::size_t home(std::uint64_t key) const noexcept {
            return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15u) >> 32) & mask;
        }
        std::unique_ptr<Bucket[]> slot;
        std::size_t mask;
        Buckets* outgrown = nullptr;  // the table before this one
        std::size_t used = 0;         // keys, with and without entry; never more than half, so that probing ends
    };

    static Bucket& probe(Buckets& slots, std::uint64_t key) noexcept {
        for (std::size_t i = slots.home(key);; i = (i + 1) & slots.mask) {
            const std::uint64_t seen = slots.slot[i].key.load(std::memory_order_relaxed);
            if (seen == key || seen == kEmpty) return slots.slot[i];
        }
    }

    // The entry is stored before the key: a reader that sees the key sees its entry.
    static void put(Buckets& slots, std::uint64_t key, T* entry) noexcept {
        Bucket& slot = probe(slots, key);
        slot.entry.store(entry, std::memory_order_release);
        if (slot.key.load(std::memory_order_relaxed) == key) return;
        ++slots.used;
        slot.key.store(key, std::memory_order_release);
    }

    Buckets& room_for_one() {
        Buckets* old = current_.load(std::memory_order_relaxed);
        if (old && 2 * (old->used + 1) <= old->mask + 1) return *old;
        auto grown = std::make_unique<Buckets>(old ? 2 * (old->mask + 1) : 64);
        for (std::size_t i = 0; old != nullptr && i <= old->mask; ++i)
            if (T* entry = old->slot[i].entry.load(std::memory_order_relaxed))
                put(*grown, old->slot[i].key.load(std::memory_order_relaxed), entry);
        grown->outgrown = old;
        Buckets* const slots = grown.release();
        current_.store(slots, std::memory_order_release);
        return *slots;
    }

    mutable std::mutex mutex_;  // taken by writers
    std::atomic<Buckets*> current_{nullptr};
};

}  // namespace osc::host
