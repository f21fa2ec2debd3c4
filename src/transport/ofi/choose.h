// The choice of a provider and of the interface that it binds to.
#pragma once

#include <rdma/fabric.h>

#include <string>

#include "transport/ofi/endpoint.h"

namespace osc::ofi {

/// See providers.def.
enum Quirk : unsigned {
    kNone = 0,
    kSoftware = 1,
    kBlockingRead = 2,
    kDeposits = 4,
};

/// A row of providers.def.
struct Provider {
    const char* name;
    unsigned quirks;
    std::size_t direct;
};

/// What libfabric offers for the wishes, the first being the best provider of the table that is there; null with the
/// reason in `why`. `chosen` is its row, or one that assumes nothing. To be freed by fi_freeinfo.
fi_info* choose(const Wishes& wishes, Provider& chosen, std::string& why);

}  // namespace osc::ofi
