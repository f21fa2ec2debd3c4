#include "base/host_address.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cstring>

namespace osc::base {
namespace {

// The address of the first interface for which fits() is true.
template <class Fits>
std::uint32_t address_of(Fits&& fits) {
    ifaddrs* all = nullptr;
    if (::getifaddrs(&all) != 0) return 0;
    std::uint32_t found = 0;
    for (const ifaddrs* at = all; at != nullptr && found == 0; at = at->ifa_next) {
        if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET || (at->ifa_flags & IFF_UP) == 0) continue;
        const std::uint32_t its = reinterpret_cast<const sockaddr_in*>(at->ifa_addr)->sin_addr.s_addr;
        if (fits(*at, its)) found = its;
    }
    ::freeifaddrs(all);
    return found;
}

// The address of any other interface may exist on the other hosts too, as that of a bridge of containers does.
std::uint32_t address_of_name() {
    char name[256] = "";
    if (::gethostname(name, sizeof name - 1) != 0) return 0;
    addrinfo hints{};
    hints.ai_family = AF_INET;
    addrinfo* all = nullptr;
    if (::getaddrinfo(name, nullptr, &hints, &all) != 0) return 0;
    std::uint32_t found = 0;
    for (const addrinfo* at = all; at != nullptr && found == 0; at = at->ai_next) {
        const std::uint32_t wanted = reinterpret_cast<const sockaddr_in*>(at->ai_addr)->sin_addr.s_addr;
        found = address_of([&](const ifaddrs& have, std::uint32_t its) {
            return its == wanted && (have.ifa_flags & IFF_LOOPBACK) == 0;
        });
    }
    ::freeaddrinfo(all);
    return found;
}

}  // namespace

std::uint32_t host_ipv4(const char* interface, bool loopback) {
    if (interface[0] != '\0')
        return address_of(
            [&](const ifaddrs& have, std::uint32_t) { return std::strcmp(have.ifa_name, interface) == 0; });
    if (loopback)
        return address_of([](const ifaddrs& have, std::uint32_t) { return (have.ifa_flags & IFF_LOOPBACK) != 0; });
    return address_of_name();
}

}  // namespace osc::base
