// What libfabric says of a provider, for osc_info. libosc itself relies on probe.h's tests instead.
#pragma once

#include <cstddef>
#include <map>
#include <string>

namespace osc::fabric {

/// Loads libosc_ofi.so and asks libfabric for the provider. Always has "version", libfabric's; with an endpoint of the
/// kind that libosc needs also "provider" (its full name), "registration", "order", "ordered_writes", "copied",
/// "pieces" and "progress", all in libfabric's words; else "missing": the first requirement without which there is one,
/// or "the provider". Empty with the reason in `why` if the library cannot be loaded. `folder`: see open().
std::map<std::string, std::string> describe(const char* provider, std::string& why, const char* folder);

/// The function osc_ofi_describe of libosc_ofi.so: lines "name=value".
using DescribeFunction = void(const char* provider, char* text, std::size_t room);

}  // namespace osc::fabric
