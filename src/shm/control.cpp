// Construction of a control table in raw shared memory.
// Build: osc_core
#include "shm/control.h"

#include <new>

namespace osc::shm {

void construct(const ControlTable& controls, std::uint32_t processes) {
    new (controls.address) ControlTableHeader;
    for (std::uint32_t index = 0; index < controls.local_count(processes); ++index)
        new (&controls.block(controls.rank_at(index))) ControlBlock;
    if (controls.local_count(processes) < processes) new (&controls.fence_counts()) FenceCounts;
}

}  // namespace osc::shm
