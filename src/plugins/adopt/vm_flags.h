// What the program or a driver has asked of memory, beyond its protection.
#pragma once

#include <cstdint>

namespace osc::shm {

/// Why memory in [first, end) cannot become a mapping of a file without a loss of what was asked for it: locks, huge
/// pages, advice about fork and core dumps, a NUMA policy, a userfaultfd. Null if there is no reason, or no list. Takes
/// the time to visit all pages of the process up to `end`.
const char* special_treatment(std::uintptr_t first, std::uintptr_t end);

}  // namespace osc::shm
