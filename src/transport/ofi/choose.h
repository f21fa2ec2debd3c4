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
};

/// What libfabric offers for the wishes, the first being the best provider of the table that is there; null with the
/// reason in `why`. `quirks` are its. To be freed by fi_freeinfo.
fi_info* choose(const Wishes& wishes, unsigned& quirks, std::string& why);

}  // namespace osc::ofi
