// Construction of a slot in raw shared memory.
#include "transport/shm/control.h"

#include <new>

namespace osc::shm {

void construct(const Slot& slot, std::uint32_t processes) {
    new (slot.address) SlotHeader;
    const std::size_t words = Slot::words_for(processes);
    for (std::uint32_t place = 0; place < slot.count_here(processes); ++place) {
        auto* block = new (&slot.block(slot.rank_at(place))) ControlBlock;
        for (std::size_t i = 0; i < words; ++i)
            new (block->words() + i) std::atomic<std::uint64_t>(0);
    }
    if (slot.count_here(processes) == processes) return;
    auto* news = new (&slot.fence_news()) FenceNews;
    for (std::size_t i = 0; i < std::size_t{2} * processes; ++i)
        new (news->closes() + i) std::atomic<std::uint32_t>(0);
}

}  // namespace osc::shm
