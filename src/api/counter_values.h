// The statistics of a process that tools/counters.def lists.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace osc {

/// Their names and their values, in the order of the table.
std::span<const char* const> counter_names();
std::vector<std::uint64_t> counter_values();

}  // namespace osc
