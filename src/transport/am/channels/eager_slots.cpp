// The receiver's side of slots.
#include "transport/am/channels/eager_slots.h"

#include <cstring>

namespace osc::am {

EagerSlotsIn::EagerSlotsIn(fabric::Endpoint& endpoint)
    : endpoint_(endpoint), memory_(std::make_unique<std::byte[]>(kSlotMemory)) {
    endpoint_.expose(memory_.get(), kSlotMemory, exposed_);
}

EagerSlotsIn::~EagerSlotsIn() {
    endpoint_.revoke(exposed_);
}

bool EagerSlotsIn::due() const {
    if (!begun_ || !landed()) return false;
    SlotHead head;
    std::memcpy(&head, memory_.get() + slot_end(emptied()) - sizeof head, sizeof head);
    return head.sends == sends_;
}

// Whether the message that has landed is complete. A posting thread may still be copying into the slot; it has ended
// when no thread posts, and before the next poll without an event returns.
bool EagerSlotsIn::complete(std::uint64_t polls) {
    if (endpoint_.is_idle()) return true;
    const std::uint32_t number = emptied() + 1;
    if (seen_ == number) return polls != seen_at_;
    seen_ = number;
    seen_at_ = polls;
    return false;
}

bool EagerSlotsIn::take(SlotHead& head, std::byte* body, bool announced, std::uint64_t polls) {
    if (!begun_ || !landed() || (!announced && !complete(polls))) return false;
    const std::byte* end = memory_.get() + slot_end(emptied()) - sizeof head;
    std::memcpy(&head, end, sizeof head);
    if (head.sends != sends_) return false;
    const std::size_t bytes = std::size_t{head.words} * kAlign;
    if (bytes <= kSlotBody) std::memcpy(body, end - bytes, bytes);
    empty(slots_of(bytes + sizeof head, emptied()));
    return true;
}

// The sender may fill the slots again. A body has left bytes where the next lap is expected.
void EagerSlotsIn::empty(std::uint32_t slots) {
    const std::uint32_t first = emptied();
    for (std::uint32_t i = 1; i < slots; ++i)
        memory_[slot_end(first + i) - 1] = std::byte{0};
    emptied_.store(first + slots, std::memory_order_release);
}

}  // namespace osc::am
