// An origin's cache of the regions of a dynamic window's target.
#include "net/origin/region_cache.h"

#include <gtest/gtest.h>

#include <span>

namespace osc::test {
namespace {

using net::Lease;
using net::RegionCache;

Lease lease_of(std::uint64_t address, std::uint64_t size, std::uint32_t number) {
    return {address, size, address, number, number, net::kExposed};
}

void keep(RegionCache& cache, const Lease& lease) {
    cache.asks();
    cache.answered(std::span(&lease, 1));
}

TEST(Cache, FindsTheRegionOfAnAddress) {
    RegionCache cache;
    Lease found;
    EXPECT_FALSE(cache.find(100, found));
    keep(cache, lease_of(100, 50, 1));
    keep(cache, lease_of(150, 10, 2));
    keep(cache, lease_of(0, 0, 0));  // none
    for (const std::uint64_t address : {100, 149, 150, 159}) {
        ASSERT_TRUE(cache.find(address, found)) << address;
        EXPECT_EQ(found.number, address < 150 ? 1u : 2u);
    }
    for (const std::uint64_t address : {0, 99, 160})
        EXPECT_FALSE(cache.find(address, found)) << address;
    EXPECT_EQ(cache.use(100, 51), nullptr);
    EXPECT_EQ(cache.use(149, 2), nullptr);
    EXPECT_EQ(cache.use(99, 2), nullptr);
    RegionCache::Kept* entry = cache.use(101, 49);
    ASSERT_NE(entry, nullptr);
    cache.release(*entry);
    Lease hidden = lease_of(200, 10, 3);
    hidden.exposed = net::kNotYet;
    keep(cache, hidden);
    EXPECT_EQ(cache.use(200, 1), nullptr);
    keep(cache, lease_of(200, 10, 3));  // it is exposed by now
    ASSERT_NE(entry = cache.use(200, 1), nullptr);
    cache.release(*entry);
}

TEST(Cache, DropsUnusedRegionsAndHidesOthers) {
    RegionCache cache;
    Lease found;
    keep(cache, lease_of(100, 50, 1));
    EXPECT_TRUE(cache.drop(100, 2));  // another region that was there before
    EXPECT_TRUE(cache.drop(99, 1));
    RegionCache::Kept* const entry = cache.use(100, 50);
    ASSERT_NE(entry, nullptr);
    cache.use(*entry);
    EXPECT_FALSE(cache.drop(100, 1));
    EXPECT_FALSE(cache.find(100, found));
    EXPECT_EQ(cache.use(100, 1), nullptr);
    // The region is attached again while the last access to the old one goes on.
    keep(cache, lease_of(100, 20, 5));
    cache.release(*entry);
    EXPECT_FALSE(cache.drop(100, 1));
    cache.release(*entry);
    EXPECT_TRUE(cache.drop(100, 1));
    ASSERT_TRUE(cache.find(100, found));
    EXPECT_EQ(found.number, 5u);
    EXPECT_TRUE(cache.drop(100, 5));
    EXPECT_FALSE(cache.find(100, found));
}

TEST(Cache, DoesNotKeepARegionWithdrawnBeforeTheReply) {
    RegionCache cache;
    Lease found;
    const Lease both[] = {lease_of(100, 50, 1), lease_of(200, 50, 2)};
    cache.asks();
    EXPECT_TRUE(cache.drop(100, 1));
    EXPECT_TRUE(cache.drop(200, 7));
    cache.answered(both);
    EXPECT_FALSE(cache.find(100, found));
    EXPECT_TRUE(cache.find(200, found));
    // That was about this answer only.
    cache.asks();
    cache.answered({});
    keep(cache, both[0]);
    EXPECT_TRUE(cache.find(100, found));
}

TEST(Cache, IsBounded) {
    RegionCache cache;
    Lease found;
    keep(cache, lease_of(0, 1, 1));
    RegionCache::Kept* const entry = cache.use(0, 1);
    ASSERT_NE(entry, nullptr);
    std::uint64_t last = 0;
    for (std::uint32_t i = 1; i <= 3 * RegionCache::kMost; ++i)
        keep(cache, lease_of(last = i * 10, 10, i + 1));
    std::size_t kept = 0;
    for (std::uint32_t i = 0; i <= 3 * RegionCache::kMost; ++i)
        kept += cache.find(i * 10, found) ? 1 : 0;
    EXPECT_LE(kept, RegionCache::kMost);
    EXPECT_TRUE(cache.find(last, found));
    EXPECT_TRUE(cache.find(0, found));  // in use
    cache.release(*entry);
    EXPECT_EQ(cache.ahead(), 1u);
    for (int i = 0; i < 20; ++i)
        EXPECT_LE(cache.ahead(), net::kMostLeases);
    EXPECT_EQ(cache.ahead(), net::kMostLeases);
}

}  // namespace
}  // namespace osc::test
