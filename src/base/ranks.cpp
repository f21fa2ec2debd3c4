#include "base/ranks.h"

namespace osc::base {

std::string text_of_ranks(std::span<const int> ranks) {
    std::string text = ranks.size() == 1 ? "rank " : "ranks ";
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        std::size_t last = i;
        while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1)
            ++last;
        text.append(i > 0 ? ", " : "").append(std::to_string(ranks[i]));
        if (last > i) text.append("-").append(std::to_string(ranks[last]));
        i = last;
    }
    return text;
}

}  // namespace osc::base
