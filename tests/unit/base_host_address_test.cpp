// The address under which other hosts reach this one.
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include "base/host_address.h"

namespace osc::test {
namespace {

TEST(HostAddress, IsThatOfTheNamedInterface) {
    EXPECT_EQ(base::host_ipv4("lo", false), htonl(INADDR_LOOPBACK));
    EXPECT_EQ(base::host_ipv4("nonsense0", false), 0u);
    EXPECT_EQ(base::host_ipv4("nonsense0", true), 0u);
}

TEST(HostAddress, IsLoopbackOnlyIfWanted) {
    EXPECT_EQ(base::host_ipv4("", true), htonl(INADDR_LOOPBACK));
    EXPECT_NE(ntohl(base::host_ipv4("", false)) >> 24, 127u);
}

}  // namespace
}  // namespace osc::test
