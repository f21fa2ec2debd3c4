// The choice of a provider and of the interface that it binds to.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <string>

#include "fabric/endpoint.h"

namespace osc::fabric {

/// See providers.def.
enum Quirk : unsigned {
    kNone = 0,
    kSoftware = 1,
    kBlockingRead = 2,
    kBuffered = 4,
    kUnlockedClose = 8,
    kHardwareAtomics = 16,
    kBoundedQueue = 32,
    kNoAtomics = 64,
    kMovesByItself = 128,
};

/// A row of providers.def.
struct Provider {
    const char* name;
    unsigned quirks;
    std::size_t direct;
};

/// The version of libfabric's interface that this code is written to.
inline constexpr std::uint32_t kVersion = FI_VERSION(1, 14);

/// The requirements on a provider, for fi_getinfo. The caller frees them with fi_freeinfo; null without memory.
fi_info* make_hints(const char* provider, bool atomics);

/// The result of fi_getinfo for the first provider of the table that this machine has, see Wishes::from; null with the
/// reason in `why`. `chosen` is the provider's row, or one without assumptions, `preference` its
/// Endpoint::preference(). The caller frees the result with fi_freeinfo.
fi_info* choose(const Wishes& wishes, Provider& chosen, int& preference, std::string& why);

}  // namespace osc::fabric
