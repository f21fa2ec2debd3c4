// The choice between several network adapters that one provider offers.
#pragma once

#include <rdma/fabric.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace osc::fabric {

/// An offer's adapter.
struct Adapter {
    std::string name;    // of libfabric's domain, such as mlx5_0
    int node = -1;       // the NUMA node that it is attached to; -1: unknown
    bool linked = true;  // false: libfabric says that its link is down
};
/// `system`: where sysfs is mounted.
Adapter adapter_of(const fi_info& offer, const std::string& system = "/sys");

/// Limits of the adapter below an offer of ofi_rxm, which reports others; 0: libfabric does not say.
struct Limits {
    std::size_t queue_pairs = 0;  // one for each connection
    std::size_t inlined = 0;      // bytes of a send that is copied, and whose end is not reported
};
Limits limits_of(const fi_info& offer);

/// Why an adapter with so many queue pairs cannot connect a process to `peers` processes and, for the probes, to
/// itself, which takes two; "" if it can, or if `pairs` is 0.
std::string too_few_queue_pairs(const std::string& adapter, std::size_t pairs, std::uint32_t peers);

/// The NUMA node whose processors this process may use; -1 if there are several, or none is known.
int own_node(const std::string& system = "/sys");

/// The offer of the provider `provider` to take: on the adapter, or the network interface, `wanted` if that is not "";
/// else the first one with a link on NUMA node `node`, else the first one with a link, else the first one. Null if
/// there is none.
const fi_info* nearest(const fi_info* offers, const char* provider, const std::string& wanted, int node,
                       const std::string& system = "/sys");

}  // namespace osc::fabric
