// What a process does in the reduction that lost_reduction_host.cpp loses.
#pragma once

namespace fault {

enum class Part { None, Waits, Dies };

}  // namespace fault

/// The calling process takes this part in the reduction that is the `number`th from now on.
extern "C" void fault_lose_reduction(fault::Part part, int number);
