// The executor: does the operations of a message on this process's memory, under the stripe locks of every other path
// (I1). Both channels use it: AgentService for processes of the node, TargetService for those of other nodes.
#pragma once

#include <cstddef>
#include <span>

#include "op/transport.h"
#include "transport/am/target/exposed_window.h"
#include "transport/am/wire.h"

namespace osc::am {

/// An operation of a message: the executor's own copy of the record, and the data in the message.
struct Operation {
    Record record;
    const std::byte* data = nullptr;
    Update how{};  // by execute(); for all but put and get
};

/// Executes the operations in order. Checks all of them before the first one touches memory (I7): defined for the type,
/// whole elements, inside the window or attached memory. `out` receives what they return, each padded.
Status execute(const ExposedWindow& window, std::span<Operation> operations, std::byte* out);

}  // namespace osc::am
