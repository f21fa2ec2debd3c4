// The writers of the datatype table.
#include "host/type_table.h"

namespace osc::host {

TypeTable::Slot& TypeTable::probe(Slots& slots, std::uint64_t key) noexcept {
    for (std::size_t i = slots.home(key);; i = (i + 1) & slots.mask) {
        const std::uint64_t seen = slots.slot[i].key.load(std::memory_order_relaxed);
        if (seen == key || seen == kEmpty) return slots.slot[i];
    }
}

// The entry before the key: whoever sees the key sees what belongs to it.
void TypeTable::put(Slots& slots, std::uint64_t key, const op::TypeInfo* info) noexcept {
    Slot& slot = probe(slots, key);
    slot.info.store(info, std::memory_order_release);
    if (slot.key.load(std::memory_order_relaxed) == key) return;
    ++slots.used;
    slot.key.store(key, std::memory_order_release);
}

TypeTable::Slots& TypeTable::room_for_one() {
    Slots* old = current_.load(std::memory_order_relaxed);
    if (old && 2 * (old->used + 1) <= old->mask + 1) return *old;
    auto grown = std::make_unique<Slots>(old ? 2 * (old->mask + 1) : 64);
    all_.reserve(all_.size() + 1);
    if (old) {
        for (std::size_t i = 0; i <= old->mask; ++i) {
            const op::TypeInfo* info = old->slot[i].info.load(std::memory_order_relaxed);
            if (info) put(*grown, old->slot[i].key.load(std::memory_order_relaxed), info);
        }
    }
    Slots* slots = grown.get();
    all_.push_back(std::move(grown));
    current_.store(slots, std::memory_order_release);
    return *slots;
}

const op::TypeInfo* TypeTable::insert(std::uint64_t key, const op::TypeInfo* info) {
    const std::lock_guard lock(mutex_);
    if (const op::TypeInfo* present = find(key)) return present;
    put(room_for_one(), key, info);
    return info;
}

const op::TypeInfo* TypeTable::erase(std::uint64_t key) noexcept {
    const std::lock_guard lock(mutex_);
    Slots* slots = current_.load(std::memory_order_relaxed);
    if (!slots) return nullptr;
    Slot& slot = probe(*slots, key);
    if (slot.key.load(std::memory_order_relaxed) != key) return nullptr;
    return slot.info.exchange(nullptr, std::memory_order_acq_rel);
}

std::vector<std::uint64_t> TypeTable::derived_keys() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::uint64_t> keys;
    const Slots* slots = current_.load(std::memory_order_relaxed);
    if (!slots) return keys;
    for (std::size_t i = 0; i <= slots->mask; ++i) {
        const op::TypeInfo* info = slots->slot[i].info.load(std::memory_order_relaxed);
        if (info && !info->predefined) keys.push_back(slots->slot[i].key.load(std::memory_order_relaxed));
    }
    return keys;
}

}  // namespace osc::host
