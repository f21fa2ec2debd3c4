// The address under which other hosts reach this one.
#pragma once

#include <cstdint>

namespace osc::base {

/// An IPv4 address of this host, in network order; 0 if there is none that other hosts are sure to mean by it. That of
/// `interface`, if this is not empty; else that of the loopback interface if `loopback` is set; else the one that the
/// host's name resolves to, if it belongs to an interface that is up and no loopback. Thread-safe.
std::uint32_t host_ipv4(const char* interface, bool loopback);

}  // namespace osc::base
