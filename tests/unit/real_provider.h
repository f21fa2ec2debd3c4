// The provider of unit tests over the real libfabric, and operations of one endpoint on the memory of its own process.
#pragma once

#include <chrono>
#include <cstdlib>

#include "fabric/endpoint.h"

namespace osc::test {

/// OSC_OFI_PROVIDER from the environment, where a machine has an adapter; else the default software provider.
inline const char* real_provider() {
    const char* const wanted = std::getenv("OSC_OFI_PROVIDER");
    return wanted != nullptr ? wanted : "tcp;ofi_rxm";
}

struct Deaf final : fabric::Receiver {
    void received(std::byte*, std::size_t) override {}
};

/// Posts an operation by post(operation) until the provider takes it, and polls until it has ended. Returns its error,
/// and -1 if it is refused or does not end.
template <class F>
int perform(fabric::Endpoint& endpoint, F&& post) {
    struct Access {
        fabric::Operation operation;  // first
        bool ended = false;
        int error = 0;
    } access;
    access.operation.ended = [](fabric::Operation& operation, int error) {
        auto& ended = reinterpret_cast<Access&>(operation);
        ended.error = error;
        ended.ended = true;
    };
    Deaf deaf;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    for (fabric::Posted posted = fabric::Posted::Again; !access.ended;) {
        if (posted == fabric::Posted::Again) posted = post(access.operation);
        endpoint.poll(deaf);
        if (posted == fabric::Posted::Failed || std::chrono::steady_clock::now() > until) return -1;
    }
    return access.error;
}

}  // namespace osc::test
