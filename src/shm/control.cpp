// Construction of a control table in raw shared memory.
// Build: osc_core
#include "shm/control.h"

#include <new>

namespace osc::shm {

void construct(const ControlTable& controls, std::uint32_t processes) {
    new (controls.address) ControlTableHeader;
    const std::size_t words = ControlTable::words_for(processes);
    for (std::uint32_t index = 0; index < controls.local_count(processes); ++index) {
        auto* block = new (&controls.block(controls.rank_at(index))) ControlBlock;
        for (std::size_t i = 0; i < words; ++i)
            new (block->words() + i) std::atomic<std::uint64_t>(0);
    }
    if (controls.local_count(processes) == processes) return;
    auto* counts = new (&controls.fence_counts()) FenceCounts;
    for (std::size_t i = 0; i < std::size_t{2} * processes; ++i)
        new (counts->closes() + i) std::atomic<std::uint32_t>(0);
}

}  // namespace osc::shm
