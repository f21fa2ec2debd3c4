// The conflicts that a test expects: pairs of the sites that it gave its accesses.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "plugins/verify/race_finder.h"

namespace osc::check {

using Sites = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
inline Sites sites_of(const std::vector<Conflict>& conflicts) {
    Sites sites;
    for (const Conflict& conflict : conflicts)
        sites.emplace_back(conflict.accesses[0].site, conflict.accesses[1].site);
    return sites;
}
inline const Sites kNone;

}  // namespace osc::check
