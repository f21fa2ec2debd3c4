// Leases on the regions of a dynamic window: look-ups by processes of other nodes, their caches, and withdrawals.
// Level: gate
#include <deque>
#include <mutex>
#include <random>
#include <set>

#include "../fuzz/leases_input.h"
#include "net_target.h"

namespace osc::test {
namespace {

using net::Lease;
using net::RegionCache;

Body look_up(std::int64_t address, std::uint32_t count = 1) {
    return Body().add({Opcode::Lookup, Basic::None, Op::None, 0, count, address});
}
Body expose(std::int64_t address) {
    return Body().add({Opcode::Expose, Basic::None, Op::None, 0, 0, address});
}
Body withdraw(std::int64_t address, std::uint32_t number) {
    return Body().add({Opcode::Withdraw, Basic::None, Op::None, 0, number, address});
}

class Leases : public ::testing::Test {
  protected:
    static constexpr std::size_t kBytes = 64, kRegions = 100, kGap = 50;
    void SetUp() override {
        for (std::size_t i = 0; i < kRegions; ++i)
            if (i != kGap) attach(i);
        target_.add_dynamic(regions_, &leases_, &caches_);
    }
    void attach(std::size_t region) { EXPECT_EQ(regions_.attach(&memory_[region * kBytes], kBytes), Fault::None); }
    std::int64_t at(std::size_t region, std::int64_t offset = 0) const {
        return reinterpret_cast<std::int64_t>(&memory_[region * kBytes]) + offset;
    }
    Answered ask(std::uint32_t origin, const Body& body) {
        return target_.ask(origin, body, kDynamicWindow, FrameKind::Query);
    }
    std::vector<std::uint32_t> detach(std::size_t region) {
        net::Leases::Given gone;
        EXPECT_EQ(leases_.detach(&memory_[region * kBytes], gone), Fault::None);
        leases_.revoke(gone);
        return gone.holders;
    }

    Target target_;
    std::vector<std::byte> memory_ = std::vector<std::byte>(kRegions * kBytes);
    Exposing endpoint_{8};
    shm::RegionTable regions_{target_.dynamic_ranks.controls().block(0)};
    net::Leases leases_{regions_, &endpoint_};
    SlowCaches caches_;
};

TEST_F(Leases, TellTheRegionAndThoseBehindIt) {
    for (const std::int64_t offset : {0, 1, 63}) {
        const Answered answered = ask(2, look_up(at(4, offset), 3));
        EXPECT_EQ(answered.status, Status::Done);
        ASSERT_EQ(answered.data.size(), 3 * sizeof(Lease));
        for (std::size_t i = 0; i < 3; ++i) {
            const Lease lease = answered.at<Lease>(i * sizeof(Lease));
            EXPECT_EQ(static_cast<std::int64_t>(lease.address), at(4 + i));
            EXPECT_EQ(lease.size, kBytes);
            EXPECT_EQ(lease.exposed, net::kNotYet);
        }
    }
    // A look-up continues across a gap and leaves unused entries empty. It returns no region behind an address in a
    // gap.
    EXPECT_EQ(static_cast<std::int64_t>(ask(2, look_up(at(kGap - 1), 2)).at<Lease>(sizeof(Lease)).address),
              at(kGap + 1));
    EXPECT_EQ(ask(2, look_up(at(kRegions - 1), 2)).at<Lease>(0).size, kBytes);
    EXPECT_EQ(ask(2, look_up(at(kRegions - 1), 2)).at<Lease>(sizeof(Lease)).size, 0u);
    for (const std::int64_t address :
         {at(kGap), at(kGap, 63), at(0) - 1, at(kRegions), std::int64_t{0}, std::int64_t{-1}})
        for (std::size_t i = 0; i < 2; ++i)
            EXPECT_EQ(ask(2, look_up(address, 2)).at<Lease>(i * sizeof(Lease)).size, 0u) << address;
    EXPECT_EQ(ask(2, look_up(at(0), net::kMostLeases)).data.size(), net::kMostLeases * sizeof(Lease));
    for (const std::uint32_t count : {0u, net::kMostLeases + 1, ~0u})
        EXPECT_EQ(ask(2, look_up(at(0), count)).status, Status::Malformed) << count;
    // A window without regions refuses look-ups.
    EXPECT_EQ(target_.ask(2, look_up(at(0))).status, Status::Malformed);
    EXPECT_EQ(target_.ask(2, expose(at(0))).status, Status::Malformed);
    EXPECT_EQ(target_.ask(2, withdraw(at(0), 1), kWindow, FrameKind::Query).status, Status::Malformed);
}

TEST_F(Leases, KnowTheirHolders) {
    ask(5, look_up(at(4), 2));
    ask(2, look_up(at(5)));
    ask(2, look_up(at(5)));
    ask(3, expose(at(5)));
    EXPECT_EQ(detach(5), (std::vector<std::uint32_t>{2, 3, 5}));
    EXPECT_EQ(detach(4), (std::vector<std::uint32_t>{5}));
    EXPECT_EQ(detach(6), (std::vector<std::uint32_t>{}));
    EXPECT_EQ(ask(2, look_up(at(5))).at<Lease>(0).size, 0u);
    net::Leases::Given gone;
    EXPECT_NE(leases_.detach(&memory_[5 * kBytes], gone), Fault::None);
    EXPECT_TRUE(gone.holders.empty());
}

TEST_F(Leases, ExposeOnceAndNeverWithTheSameKeyAgain) {
    const Lease first = ask(2, expose(at(7, 9))).at<Lease>(0);
    EXPECT_EQ(first.exposed, net::kExposed);
    EXPECT_EQ(first.base, first.address + Exposing::kShift);
    EXPECT_EQ(ask(3, expose(at(7))).at<Lease>(0).key, first.key);
    EXPECT_EQ(ask(4, look_up(at(7))).at<Lease>(0).key, first.key);
    EXPECT_EQ(endpoint_.keys(), 1u);
    EXPECT_TRUE(endpoint_.is_live(first.key));
    detach(7);
    EXPECT_FALSE(endpoint_.is_live(first.key));
    EXPECT_EQ(ask(2, expose(at(7))).at<Lease>(0).size, 0u);
    ASSERT_EQ(regions_.attach(&memory_[7 * kBytes], kBytes / 2), Fault::None);
    const Lease second = ask(2, expose(at(7))).at<Lease>(0);
    EXPECT_EQ(second.address, first.address);
    EXPECT_EQ(second.size, kBytes / 2);
    EXPECT_NE(second.key, first.key);
    EXPECT_NE(second.number, first.number);
    // A region that the provider cannot register is reported as such, and registered only once.
    endpoint_.refuses = true;
    EXPECT_EQ(ask(2, expose(at(8))).at<Lease>(0).exposed, net::kNever);
    endpoint_.refuses = false;
    EXPECT_EQ(ask(2, expose(at(8))).at<Lease>(0).exposed, net::kNever);
    EXPECT_TRUE(detach(8) == std::vector<std::uint32_t>{2});
}

// A withdrawal is answered as soon as the lease is unused, even before earlier requests that still wait.
TEST_F(Leases, AreWithdrawnWhenUnused) {
    const auto send = [&](std::uint32_t number, const Body& body, FrameKind kind) {
        target_.send(3, number, body, kDynamicWindow, kind);
    };
    using Answers = std::vector<std::pair<std::uint32_t, Status>>;
    send(1, withdraw(64, 3), FrameKind::Query);  // in use for 0 looks
    EXPECT_EQ(target_.take_answers(), (Answers{{1, Status::Done}}));
    EXPECT_FALSE(target_.service.resume());
    send(2, withdraw(64, 2), FrameKind::Query);  // for 2
    send(3, withdraw(64, 1), FrameKind::Query);  // for 1
    send(4, look_up(at(0)), FrameKind::Query);
    EXPECT_EQ(target_.take_answers(), (Answers{{4, Status::Done}}));
    EXPECT_TRUE(target_.service.resume());
    EXPECT_EQ(target_.take_answers(), (Answers{{3, Status::Done}}));
    EXPECT_FALSE(target_.service.resume());
    EXPECT_EQ(target_.take_answers(), (Answers{{2, Status::Done}}));
    // Where turns are kept it has no place; a notice is not answered.
    send(5, withdraw(64, 3), FrameKind::Request);
    EXPECT_EQ(target_.take_answers(), (Answers{{5, Status::Malformed}}));
    send(6, withdraw(64, 2), FrameKind::Notice);
    EXPECT_FALSE(target_.service.resume());
    EXPECT_TRUE(target_.take_answers().empty());
    // An owner that has died waits for no answer, and the accesses to its regions may never end.
    send(7, withdraw(192, 2), FrameKind::Query);
    EXPECT_TRUE(target_.service.waits());
    target_.service.died(token_of(4));
    EXPECT_TRUE(target_.service.waits());
    target_.service.died(token_of(3));
    EXPECT_FALSE(target_.service.waits());
    EXPECT_EQ(target_.take_answers(), (Answers{{7, Status::UnknownWindow}}));
    // The free of the window answers all waiting requests.
    send(8, withdraw(128, 2), FrameKind::Query);
    target_.service.remove(kDynamicWindow);
    EXPECT_EQ(target_.take_answers(), (Answers{{8, Status::UnknownWindow}}));
    EXPECT_FALSE(target_.service.resume());
}

// Random steps of an owner and of origins against a model; tests/fuzz has the same under libFuzzer.
TEST(LeasesOfAnyOrder, AreAsTheModelSays) {
    std::mt19937 random(61);
    std::uint64_t withdrawn = 0, accesses = 0;
    for (int round = 0; round < 500; ++round) {
        std::vector<std::uint8_t> input(1 + random() % 3000);
        std::ranges::generate(input, [&] { return static_cast<std::uint8_t>(random()); });
        LeasesInput leases;
        const char* wrong = leases.run(input.data(), input.size());
        ASSERT_EQ(wrong, nullptr) << wrong << "; round " << round;
        withdrawn += leases.withdrawn();
        accesses += leases.accesses();
    }
    EXPECT_GT(withdrawn, 500u);
    EXPECT_GT(accesses, 500u);
}

/// An origin of the stress below: its cache, its handler's lock, and its own end of the network.
class Origin final : public net::Caches {
  public:
    explicit Origin(std::uint32_t mine) : rank(mine) {}
    bool drop(std::uint32_t, std::uint64_t address, std::uint32_t number) override {
        return cache.drop(address, number);
    }
    const std::uint32_t rank;
    RegionCache cache;
};

// An owner attaches and detaches, and origins access the regions they find, with the real code of both sides: no access
// uses a revoked key. The target's handler and the withdrawals run in different threads, and overtake each other.
TEST(LeasesOfThreads, NoAccessReachesRevokedMemory) {
    const Deadline deadline(120);
    constexpr std::uint32_t kOrigins = 3, kPlaces = 4;
    const auto kWithdrawals = static_cast<std::uint64_t>(times(20000, 3000));
    std::vector<std::byte> memory(kPlaces * 64);
    Exposing endpoint(100000);
    Ranks ranks(1);
    shm::RegionTable table(ranks.controls().block(0));
    net::Leases leases(table, &endpoint);
    std::deque<Origin> origins;
    for (std::uint32_t rank = 0; rank < kOrigins; ++rank)
        origins.emplace_back(rank);
    std::mutex driving;  // the owner's
    std::atomic<bool> over{false};
    std::atomic<std::uint64_t> accesses{0}, misses{0}, wrong{0};
    const auto access = [&](Origin& origin, std::mt19937& random) {
        const std::uint64_t address = reinterpret_cast<std::uint64_t>(&memory[random() % memory.size()]);
        RegionCache::Kept* entry = origin.cache.use(address, 1);
        if (entry == nullptr) {
            Lease answer;
            origin.cache.asks();
            {
                const std::lock_guard lock(driving);
                leases.expose(origin.rank, address, answer);
            }
            if (random() % 2 == 0) std::this_thread::yield();  // the reply is in flight
            origin.cache.answered(std::span(&answer, 1));
            misses.fetch_add(1);
            entry = origin.cache.use(address, 1);
            if (entry == nullptr) return;
        }
        const std::uint64_t key = entry->lease.key;
        for (std::uint32_t i = random() % 4; i > 0; --i) {
            if (!endpoint.is_live(key)) wrong.fetch_add(1);
            std::this_thread::yield();
        }
        if (!endpoint.is_live(key)) wrong.fetch_add(1);
        origin.cache.release(*entry);
        accesses.fetch_add(1);
    };
    std::vector<std::jthread> threads;
    for (Origin& origin : origins)
        threads.emplace_back([&] {
            std::mt19937 random(origin.rank);
            while (!over.load())
                access(origin, random);
        });
    std::mt19937 random(99);
    std::set<std::uint32_t> attached;
    std::uint64_t withdrawn = 0;
    while (withdrawn < kWithdrawals) {
        const std::uint32_t place = random() % kPlaces;
        if (attached.insert(place).second) {
            ASSERT_EQ(table.attach(&memory[place * 64], 64), Fault::None);
            continue;
        }
        attached.erase(place);
        net::Leases::Given gone;
        ASSERT_EQ(leases.detach(&memory[place * 64], gone), Fault::None);
        for (const std::uint32_t holder : gone.holders)
            for (++withdrawn; !origins[holder].drop(0, gone.lease.address, gone.lease.number);)
                std::this_thread::yield();
        leases.revoke(gone);
        if (random() % 16 == 0) std::this_thread::yield();
    }
    over.store(true);
    threads.clear();
    EXPECT_EQ(wrong.load(), 0u);
    EXPECT_GT(accesses.load(), 0u);
    EXPECT_GT(misses.load(), 0u);
    EXPECT_GT(withdrawn, 0u);
}

}  // namespace
}  // namespace osc::test
