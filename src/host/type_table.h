// From datatype handle to what is known of it. Readers take no lock and never wait. Owns the slots, not the entries.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "op/type_info.h"

namespace osc::host {

/// An open-addressing hash table whose removed entries keep their key. Hosts reuse handles, so the keys ever seen stay
/// few, and a reader can probe without noticing that neighbours come and go. Tables that were outgrown stay,
/// because a reader may still be in one; their sizes double, so they sum up to less than the current one.
///
/// A lookup needs its own handle to be valid throughout, which is the user's duty for every MPI call; hence an entry
/// found is current even if other handles are created and freed meanwhile.
class TypeTable {
  public:
    /// The entry of `key` or null. Lock-free.
    [[nodiscard]] const op::TypeInfo* find(std::uint64_t key) const noexcept {
        const Slots* slots = current_.load(std::memory_order_acquire);
        if (!slots) return nullptr;
        for (std::size_t i = slots->home(key);; i = (i + 1) & slots->mask) {
            const std::uint64_t seen = slots->slot[i].key.load(std::memory_order_acquire);
            if (seen == key) return slots->slot[i].info.load(std::memory_order_acquire);
            if (seen == kEmpty) return nullptr;
        }
    }
    /// Enters `info` unless `key` has an entry; returns the entry. Throws std::bad_alloc.
    const op::TypeInfo* insert(std::uint64_t key, const op::TypeInfo* info);
    /// Removes the entry of `key`, if any, and returns it.
    const op::TypeInfo* erase(std::uint64_t key) noexcept;
    /// The keys whose entries are not predefined types.
    [[nodiscard]] std::vector<std::uint64_t> derived_keys() const;

  private:
    static constexpr std::uint64_t kEmpty = 0;  // no host's handle of a datatype

    struct Slot {
        std::atomic<std::uint64_t> key{kEmpty};
        std::atomic<const op::TypeInfo*> info{nullptr};
    };
    struct Slots {
        explicit Slots(std::size_t size) : slot(std::make_unique<Slot[]>(size)), mask(size - 1) {}
        [[nodiscard]] std::size_t home(std::uint64_t key) const noexcept {
            return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15u) >> 32) & mask;
        }
        std::unique_ptr<Slot[]> slot;
        std::size_t mask;
        std::size_t used = 0;  // keys, with and without entry; never more than half, so that probing ends
    };

    static Slot& probe(Slots& slots, std::uint64_t key) noexcept;
    static void put(Slots& slots, std::uint64_t key, const op::TypeInfo* info) noexcept;
    Slots& room_for_one();

    mutable std::mutex mutex_;  // of the writers
    std::vector<std::unique_ptr<Slots>> all_;
    std::atomic<Slots*> current_{nullptr};
};

}  // namespace osc::host
