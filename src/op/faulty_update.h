// Faults in how elements are updated (base/inject.h). Only test builds call this.
#pragma once

#include "base/inject.h"

#ifdef OSC_FAULTS

#include <cstring>
#include <vector>

#include "op/transport.h"

namespace osc {

/// Updates wrongly and returns true if the chosen fault is one of these.
inline bool updated_wrongly(const Update& how, std::byte* target, const std::byte* origin, std::size_t count) {
    if (OSC_FAULT(swapped_accumulates) && how.op != Op::NoOp) {
        std::vector<std::byte> data(origin, origin + count * how.width);
        base::postpone([how, target, data, count] { how.apply(target, data.data(), count); }, true);
        return true;
    }
    if (OSC_FAULT(padding_overwritten) && how.op == Op::Replace) {
        std::memcpy(target, origin, count * how.width);
        return true;
    }
    if (OSC_FAULT(tie_keeps_index) && (how.op == Op::Minloc || how.op == Op::Maxloc)) {
        for (std::size_t i = 0; i < count; ++i, target += how.width, origin += how.width)
            if (std::memcmp(target, origin, op::data_runs(how.basic).run[0].size) != 0) how.apply(target, origin, 1);
        return true;
    }
    return false;
}

}  // namespace osc

#define OSC_FAULT_UPDATE(how, target, origin, count) \
    if (::osc::updated_wrongly(how, target, origin, count)) return

#else

#define OSC_FAULT_UPDATE(how, target, origin, count)

#endif
