// The choice of a provider and of the interface that it binds to.
#pragma once

#include <rdma/fabric.h>

#include <cstdint>
#include <memory>
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
    kInlineAtomics = 256,
};

/// A row of providers.def.
struct Provider {
    const char* name;
    unsigned quirks;
    std::size_t direct;
};

/// The version of libfabric's interface that this code is written to.
inline constexpr std::uint32_t kVersion = FI_VERSION(1, 14);

struct FreeInfo {
    void operator()(fi_info* info) const { fi_freeinfo(info); }
};
/// Hints for fi_getinfo, or its result.
using Info = std::unique_ptr<fi_info, FreeInfo>;

/// The requirements on a provider, for fi_getinfo; null without memory.
Info make_hints(const char* provider, bool atomics);

/// The result of fi_getinfo; null if libfabric offers nothing.
inline Info find_offers(const fi_info& hints) {
    fi_info* found = nullptr;
    return Info(fi_getinfo(kVersion, nullptr, nullptr, 0, &hints, &found) == 0 ? found : nullptr);
}

/// The result of fi_getinfo for the first provider of the table that this machine has, see Wishes::from; null with the
/// reason in `why`. `chosen` is the provider's row, or one without assumptions, `preference` its
/// Endpoint::preference().
Info choose(const Wishes& wishes, Provider& chosen, int& preference, std::string& why);

}  // namespace osc::fabric
