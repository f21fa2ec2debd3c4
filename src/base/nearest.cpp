// Optimal string alignment distance, three rows of the table at a time.
#include "base/nearest.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace osc::base {

std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> older;
    std::vector<std::size_t> old(b.size() + 1);
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(old.begin(), old.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replaced = old[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            row[j] = std::min({old[j] + 1, row[j - 1] + 1, replaced});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = std::min(row[j], older[j - 2] + 1);
        }
        older = std::exchange(old, row);
    }
    return old[b.size()];
}

std::string_view nearest(std::string_view word, const std::vector<std::string_view>& known, std::string_view prefix) {
    const std::string_view wrong = word.substr(std::min(prefix.size(), word.size()));
    std::string_view best;
    std::size_t least = ~std::size_t{0};
    for (const std::string_view candidate : known) {
        const std::string_view right = candidate.substr(std::min(prefix.size(), candidate.size()));
        const std::size_t distance = edit_distance(wrong, right);
        const bool contains = wrong.size() >= 3 && right.size() >= 3 &&
                              (right.find(wrong) != right.npos || wrong.find(right) != wrong.npos);
        if (distance >= least || (distance > std::max(wrong.size(), right.size()) / 3 && !contains)) continue;
        best = candidate;
        least = distance;
    }
    return best;
}

}  // namespace osc::base
