// Ranks in messages.
#pragma once

#include <span>
#include <string>

namespace osc::base {

/// "rank 1", "ranks 0, 2-3". `ranks` ascend.
std::string text_of_ranks(std::span<const int> ranks);

}  // namespace osc::base
