// The receiver's side of slots.
#include "agent/slots.h"

#include <cstring>

namespace osc::net {

SlotsIn::SlotsIn(ofi::Endpoint& endpoint)
    : endpoint_(endpoint), memory_(std::make_unique<std::byte[]>(kSlots * kSlotBytes)) {
    endpoint_.expose(memory_.get(), kSlots * kSlotBytes, exposed_);
}

SlotsIn::~SlotsIn() {
    endpoint_.revoke(exposed_);
}

bool SlotsIn::due() const {
    if (!begun_ || !landed()) return false;
    SlotHead head;
    std::memcpy(&head, memory_.get() + slot_end(emptied()) - sizeof head, sizeof head);
    return head.sends == sends_;
}

// Of what has landed. The driver has moved it, or another thread, by the way, which posts: then that may be at it
// still.
bool SlotsIn::whole(std::uint64_t polls) {
    if (endpoint_.settled()) return true;
    const std::uint32_t number = emptied() + 1;
    if (seen_ == number) return polls != seen_at_;
    seen_ = number;
    seen_at_ = polls;
    return false;
}

bool SlotsIn::take(SlotHead& head, std::byte* body, bool announced, std::uint64_t polls) {
    if (!begun_ || !landed() || (!announced && !whole(polls))) return false;
    const std::byte* end = memory_.get() + slot_end(emptied()) - sizeof head;
    std::memcpy(&head, end, sizeof head);
    if (head.sends != sends_) return false;
    const std::size_t bytes = std::size_t{head.words} * kAlign;
    if (bytes <= kSlotBody) std::memcpy(body, end - bytes, bytes);
    emptied_.store(emptied() + 1, std::memory_order_release);  // the sender may fill it again
    return true;
}

}  // namespace osc::net
