// Operations on regions of a dynamic window of another node over the fake fabric: look-ups of the origin, its cache,
// direct accesses, and the withdrawal when the owner detaches a region.
#include <gtest/gtest.h>

#include <random>

#include "net/origin/attached.h"
#include "net_processes.h"

namespace osc::test {
namespace {

constexpr std::size_t kRegions = 12, kBytes = 3000;

JobSetup setup_of(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    JobSetup setup;
    setup.bytes = 0;
    constexpr net::Protocol kProtocols[] = {net::Protocol::Auto, net::Protocol::Buffered, net::Protocol::Direct};
    setup.protocol = kProtocols[random() % std::size(kProtocols)];
    setup.behaviour.seed = seed;
    setup.behaviour.virtual_addresses = random() % 2 == 0;
    setup.behaviour.provider_keys = random() % 2 == 0;
    setup.behaviour.automatic_progress = random() % 2 == 0;
    setup.behaviour.registrations = random() % 3 == 0 ? 4 : 1000;  // then some regions are reached by messages only
    setup.behaviour.largest_transfer = random() % 2 == 0 ? 700 : 1 << 20;
    setup.behaviour.direct_from = 512;
    return setup;
}

/// A job whose rank 0 attaches regions; the others access them.
class Dynamic {
  public:
    explicit Dynamic(const JobSetup& setup) : all(setup) {}

    /// As a window does it.
    template <class F>
    Fault operate(std::uint32_t origin, F&& op) {
        all.went_on();
        net::Stream& stream = all[origin].to(0);
        const std::lock_guard lock(stream.mutex);
        net::Description there{};
        if (const Fault fault = stream.queries.describe(there); fault != Fault::None) return fault;
        net::Attached attached(stream);
        op(attached);
        return attached.finish();
    }
    Fault put(std::uint32_t origin, std::size_t at, const void* from, std::size_t bytes) {
        return operate(origin, [&](Transport& t) { t.put(address(at), from, bytes); });
    }
    Fault get(std::uint32_t origin, std::size_t at, void* to, std::size_t bytes) {
        return operate(origin, [&](Transport& t) { t.get(address(at), to, bytes); });
    }
    Fault complete_ops(std::uint32_t origin) { return all[origin].far->complete_ops(0); }
    void attach(std::size_t region) {
        EXPECT_EQ(all[0].regions->attach(memory.data() + region * kBytes, kBytes), Fault::None);
    }
    void detach(std::size_t region) {
        all.went_on();
        net::Leases::Given gone;
        EXPECT_EQ(all[0].leases->detach(memory.data() + region * kBytes, gone), Fault::None);
        all[0].far->withdraw(gone.lease, gone.holders);
        all[0].leases->revoke(gone);
    }
    std::int64_t address(std::size_t at) const { return reinterpret_cast<std::int64_t>(memory.data() + at); }
    std::uint64_t requests(std::uint32_t origin) { return all[origin].network.counts().requests.load(); }

    Deadline deadline{120};
    std::vector<std::byte> memory = std::vector<std::byte>(kRegions * kBytes);
    Processes all;
};

TEST(FabricDynamic, ARegionIsAskedForOnce) {
    JobSetup setup = setup_of(1);
    setup.protocol = net::Protocol::Buffered;
    Dynamic job(setup);
    job.attach(0);
    const std::uint64_t value = 7;
    EXPECT_EQ(job.put(1, 8, &value, sizeof value), Fault::None);
    const std::uint64_t before = job.requests(1);
    for (std::size_t i = 2; i < 20; ++i)
        EXPECT_EQ(job.put(1, 8 * i, &value, sizeof value), Fault::None);
    EXPECT_EQ(job.requests(1), before);
    EXPECT_EQ(job.complete_ops(1), Fault::None);
    EXPECT_EQ(job.requests(1), before + 1);
    EXPECT_EQ(job.memory[8], std::byte{7});
    job.detach(0);
    EXPECT_EQ(job.put(1, 8, &value, sizeof value), Fault::Range);
    EXPECT_EQ(job.complete_ops(1), Fault::None);
    job.attach(0);
    EXPECT_EQ(job.put(1, 8, &value, sizeof value), Fault::None);
    EXPECT_EQ(job.complete_ops(1), Fault::None);
}

// Random accesses, attaching and detaching, against a model of what is attached and of its bytes.
TEST(FabricDynamic, RandomAccessesAgreeWithTheModel) {
    std::uint64_t direct = 0;
    for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(times(30, 6)); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Dynamic job(setup_of(seed));
        std::mt19937_64 random(seed);
        std::vector<std::byte> model(job.memory.size());
        std::array<bool, kRegions> attached{};
        for (int i = 0; i < times(400, 100) && !::testing::Test::HasFailure(); ++i) {
            const std::size_t region = random() % kRegions;
            if (random() % 8 == 0) {
                attached[region] ? job.detach(region) : job.attach(region);
                attached[region] = !attached[region];
                continue;
            }
            const auto origin = static_cast<std::uint32_t>(1 + random() % 2);
            const std::size_t at = region * kBytes + random() % kBytes;
            const std::size_t bytes = 1 + random() % std::min<std::size_t>(model.size() - at, 2 * kBytes);
            bool all_attached = true;
            for (std::size_t part = region; part <= (at + bytes - 1) / kBytes; ++part)
                all_attached = all_attached && attached[part];
            std::vector<std::byte> mine(bytes);
            for (std::byte& byte : mine)
                byte = static_cast<std::byte>(random());
            const auto there = model.begin() + static_cast<std::ptrdiff_t>(at);
            const bool put = random() % 2 == 0;
            const Fault fault = put ? job.put(origin, at, mine.data(), bytes) : job.get(origin, at, mine.data(), bytes);
            EXPECT_EQ(fault, all_attached ? Fault::None : Fault::Range);
            EXPECT_EQ(job.complete_ops(origin), Fault::None);
            if (!all_attached) continue;
            if (put)
                std::ranges::copy(mine, there);
            else
                EXPECT_TRUE(std::ranges::equal(mine, std::span(there, bytes)));
        }
        EXPECT_EQ(job.memory, model);
        direct += job.all.fabric().totals().writes;
    }
    EXPECT_GT(direct, 0u);
}

}  // namespace
}  // namespace osc::test
