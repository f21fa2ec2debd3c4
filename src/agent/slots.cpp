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

bool SlotsIn::take(SlotHead& head, std::byte* body, bool announced) {
    if (!begun_ || !landed()) return false;
    // Whole, and not only its last byte: the driver itself has moved it, or whoever did is out of the provider again,
    // or has reported what came later.
    if (!announced && !endpoint_.settled()) return false;
    const std::byte* end = memory_.get() + slot_end(emptied()) - sizeof head;
    std::memcpy(&head, end, sizeof head);
    if (head.sends != sends_) return false;
    const std::size_t bytes = std::size_t{head.words} * kAlign;
    if (bytes <= kSlotBody) std::memcpy(body, end - bytes, bytes);
    emptied_.store(emptied() + 1, std::memory_order_relaxed);
    return true;
}

}  // namespace osc::net
