// The choice of a provider by name: libfabric's name of one layer also stands for several providers.
#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "fabric/endpoint.h"

namespace osc::test {
namespace {

std::unique_ptr<fabric::Endpoint> open(const char* name, bool atomics = false) {
    std::string why;
    return std::unique_ptr<fabric::Endpoint>(fabric::open({name, "", true, atomics}, why));
}

bool exists(const char* name) {
    const auto endpoint = open(name);
    return endpoint != nullptr && std::string(endpoint->provider()) == name;
}

TEST(FabricChoice, TakesTheProviderOfThatName) {
    for (const char* const name : {"tcp;ofi_rxm", "net"}) {
#ifdef __SANITIZE_ADDRESS__
        if (std::string(name) == "net") continue;  // libfabric 1.17 leaks memory in its fi_endpoint
#endif
        for (const bool atomics : {false, true}) {
            const auto endpoint = open(name, atomics);
            if (endpoint == nullptr) continue;
            // From libfabric 1.18 on net is called tcp.
            const std::string wanted = exists(name) ? name : "tcp";
            EXPECT_EQ(endpoint->provider(), wanted) << atomics;
        }
    }
}

// The properties of a row must not be given to another provider.
TEST(FabricChoice, TcpIsItselfOrTheLowerLayerOfOneWithItsOwnProperties) {
    const auto endpoint = open("tcp");
    if (endpoint == nullptr) GTEST_SKIP() << "this machine has no tcp";
    const auto layered = open("tcp;ofi_rxm");
    ASSERT_NE(layered, nullptr);
    const std::string name = endpoint->provider();
    EXPECT_TRUE(name == "tcp" || name == "tcp;ofi_rxm") << name;
    EXPECT_EQ(endpoint->largest_message() == layered->largest_message(), name == "tcp;ofi_rxm");
}

// The native provider over TCP takes a fraction of the memory of the layered one.
TEST(FabricChoice, TakesTheNativeProviderOfSoftware) {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "libfabric 1.17 leaks memory in its fi_endpoint";
#endif
    const auto chosen = open("");
    if (chosen == nullptr) GTEST_SKIP() << "this machine has no provider";
    const std::string name = chosen->provider();
    if (name != "tcp" && name != "net" && name != "tcp;ofi_rxm") GTEST_SKIP() << "this machine has hardware: " << name;
    EXPECT_EQ(name, exists("net") ? "net" : "tcp");
}

// The variable of tcp, which net does not read, leaves its interface to libosc: the endpoint is on loopback.
TEST(FabricChoice, NetHasAVariableOfItsOwn) {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "libfabric 1.17 leaks memory in its fi_endpoint";
#endif
    if (!exists("net")) GTEST_SKIP() << "this machine has no net";
    ::setenv("FI_TCP_IFACE", "nonesuch", 1);
    const auto endpoint = open("net");
    ::unsetenv("FI_TCP_IFACE");
    ASSERT_NE(endpoint, nullptr);
    EXPECT_EQ(endpoint->ipv4(), htonl(INADDR_LOOPBACK));
}

TEST(FabricChoice, SaysWhatAnUnknownNameIs) {
    std::string why;
    EXPECT_EQ(fabric::open({"nonesuch", "", true, false}, why), nullptr);
    EXPECT_NE(why.find("nonesuch"), std::string::npos) << why;
}

}  // namespace
}  // namespace osc::test
