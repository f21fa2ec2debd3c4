// The provider of unit tests over the real libfabric.
#pragma once

#include <cstdlib>

namespace osc::test {

/// OSC_OFI_PROVIDER from the environment, where a machine has an adapter; else the default software provider.
inline const char* real_provider() {
    const char* const wanted = std::getenv("OSC_OFI_PROVIDER");
    return wanted != nullptr ? wanted : "tcp;ofi_rxm";
}

}  // namespace osc::test
