// The region table of a dynamic window: attach and detach by its owner while others read it.
#include <random>

#include "shm/regions.h"
#include "thread_ranks.h"

namespace osc::test {
namespace {

using shm::Region;

void* address(std::uint64_t value) {
    return reinterpret_cast<void*>(value);
}

const auto read_own = [](std::uint64_t offset, std::uint64_t count) {
    std::vector<Region> copy(count);
    auto* from = reinterpret_cast<std::uint64_t*>(shm::Arena::mine().at(offset));
    auto* to = reinterpret_cast<std::uint64_t*>(copy.data());
    for (std::size_t i = 0; i < count * sizeof(Region) / sizeof(std::uint64_t); ++i)
        to[i] = std::atomic_ref<std::uint64_t>(from[i]).load(std::memory_order_acquire);
    return copy;
};

struct Regions : ::testing::Test {
    Ranks ranks{4};
    shm::ControlBlock& block = ranks.controls().block(0);
    shm::RegionTable table{block};
    shm::RegionView view;
};

TEST_F(Regions, AreSortedAndNeverOverlap) {
    EXPECT_TRUE(view.current(block, read_own, kNoneDead)->list().empty());
    EXPECT_EQ(table.attach(address(0x5000), 0x100), Fault::None);
    EXPECT_EQ(table.attach(address(0x1000), 0x100), Fault::None);
    EXPECT_EQ(table.attach(address(0x1100), 0x100), Fault::None);
    for (const std::uint64_t base : {0x0fffu, 0x1000u, 0x10ffu, 0x50ffu})
        EXPECT_EQ(table.attach(address(base), 2), Fault::Attach) << base;
    EXPECT_EQ(table.attach(address(0x800), 0x10000), Fault::Attach);
    const auto regions = view.current(block, read_own, kNoneDead);
    ASSERT_EQ(regions->list().size(), 3u);
    EXPECT_EQ(regions->list()[0].base, 0x1000u);
    EXPECT_EQ(regions->list()[2].base, 0x5000u);
    EXPECT_EQ(shm::find_region(regions->list(), 0xfff), nullptr);
    EXPECT_EQ(shm::find_region(regions->list(), 0x10ff), regions->list().data());
    EXPECT_EQ(shm::find_region(regions->list(), 0x1100), regions->list().data() + 1);
    EXPECT_EQ(shm::find_region(regions->list(), 0x1200), nullptr);
    EXPECT_EQ(table.detach(address(0x1001)), Fault::Attach);
    EXPECT_EQ(table.detach(address(0x1000)), Fault::None);
    EXPECT_EQ(table.detach(address(0x1000)), Fault::Attach);
    EXPECT_EQ(shm::find_region(view.current(block, read_own, kNoneDead)->list(), 0x1000), nullptr);
}

// A table that cannot be mapped for now is not an empty one, and is read when it can be.
TEST_F(Regions, ATableThatCannotBeReadIsNotEmpty) {
    ASSERT_EQ(table.attach(address(0x1000), 0x100), Fault::None);
    const auto fails = [](std::uint64_t, std::uint64_t) { return std::nullopt; };
    EXPECT_EQ(view.current(block, fails, kNoneDead), nullptr);
    EXPECT_EQ(view.current(block, fails, kNoneDead), nullptr);
    ASSERT_NE(view.current(block, read_own, kNoneDead), nullptr);
    EXPECT_EQ(view.current(block, read_own, kNoneDead)->list().size(), 1u);
    EXPECT_EQ(view.current(block, fails, kNoneDead)->list().size(), 1u);  // which has not changed
    ASSERT_EQ(table.attach(address(0x2000), 0x100), Fault::None);
    EXPECT_EQ(view.current(block, fails, kNoneDead), nullptr);
    EXPECT_EQ(view.current(block, read_own, kNoneDead)->list().size(), 2u);
}

// The sequence lock's writer is killed between its two stores of the version.
TEST_F(Regions, AnOwnerThatDiesInAChangeEndsTheWaitOfItsReaders) {
    const Deadline deadline(60);
    ASSERT_EQ(table.attach(address(0x1000), 0x100), Fault::None);
    ASSERT_NE(view.current(block, read_own, kNoneDead), nullptr);
    block.regions_version.fetch_add(1);
    std::atomic<int> asked{0};
    const auto dies_later = [&] { return ++asked >= 2; };
    EXPECT_EQ(view.current(block, read_own, dies_later), nullptr);
    EXPECT_EQ(asked.load(), 2);
}

// An owner that is stopped in the middle of a change, by a debugger or a batch system, is waited for.
TEST_F(Regions, AnOwnerThatPausesInAChangeIsWaitedFor) {
    const Deadline deadline(60);
    ASSERT_EQ(table.attach(address(0x1000), 0x100), Fault::None);
    block.regions_version.fetch_add(1);
    const auto goes_on = [&] {
        block.regions_version.fetch_add(1);
        return false;
    };
    const auto regions = view.current(block, read_own, goes_on);
    ASSERT_NE(regions, nullptr);
    EXPECT_EQ(regions->list().size(), 1u);
}

// Every region that a reader is given is one that was attached, whole; the table outgrows its place again and again.
TEST_F(Regions, ReadersSeeWholeTablesWhileTheOwnerChangesThem) {
    const Deadline deadline(120);
    const int changes = times(20000, 4000);
    std::atomic<bool> over{false};
    ranks.run([&](RankCore& core) {
        if (core.me != 0) {
            shm::RegionView own;
            while (!over) {
                const auto regions = own.current(block, read_own, kNoneDead);
                std::uint64_t before = 0;
                for (const Region& region : regions->list()) {
                    ASSERT_GT(region.base, before);
                    ASSERT_EQ(region.size, region.base / 2);
                    ASSERT_FALSE(region.shared);
                    before = region.base + region.size;
                }
            }
            return;
        }
        std::minstd_rand random(5);
        for (int round = 0; round < changes / 32; ++round) {
            shm::RegionTable next(block);
            std::vector<std::uint64_t> attached;
            for (int i = 0; i < 32; ++i) {
                const std::uint64_t base = std::uint64_t{2} << (random() % 46);
                if (random() % 3 != 0) {
                    if (next.attach(address(base), base / 2) == Fault::None) attached.push_back(base);
                } else if (!attached.empty()) {
                    ASSERT_EQ(next.detach(address(attached.back())), Fault::None);
                    attached.pop_back();
                }
            }
            // A window that is freed has no readers; here they go on, so the table ends empty.
            for (const std::uint64_t base : attached)
                ASSERT_EQ(next.detach(address(base)), Fault::None);
        }
        over = true;
    });
}

// Only what lies in the noted part is found, and nothing once the table has changed.
TEST(LastRegion, IsFoundAtItsVersionOnly) {
    Ranks ranks(1);
    shm::ControlBlock& block = ranks.controls().block(0);
    shm::LastRegion last;
    std::byte memory[256];
    EXPECT_EQ(last.find(block, 0x1000, 8), nullptr);
    const std::uint64_t version = block.regions_version.load();
    last.note(version, 0x1000, 0x1100, memory);
    EXPECT_EQ(last.find(block, 0x1000, 256), memory);
    EXPECT_EQ(last.find(block, 0x10f8, 8), memory + 0xf8);
    EXPECT_EQ(last.find(block, 0x1100, 0), nullptr);
    EXPECT_EQ(last.find(block, 0xff8, 16), nullptr);
    EXPECT_EQ(last.find(block, 0x10f9, 8), nullptr);
    EXPECT_EQ(last.find(block, 0x1000, ~std::uint64_t{0}), nullptr);
    EXPECT_EQ(last.find(block, ~std::uint64_t{0}, 8), nullptr);
    for (int change = 1; change <= 2; ++change) {
        block.regions_version.store(version + static_cast<std::uint64_t>(change));
        EXPECT_EQ(last.find(block, 0x1000, 8), nullptr);
    }
    last.note(version + 2, 0x2000, 0x2100, memory);
    EXPECT_EQ(last.find(block, 0x1000, 8), nullptr);
    EXPECT_EQ(last.find(block, 0x2000, 8), memory);
}

// Two threads note different regions of one version; no reader mixes them.
TEST(LastRegion, ReadersSeeWholeNotes) {
    const Deadline deadline(120);
    const int notes = times(200000, 20000);
    Ranks ranks(4);
    shm::ControlBlock& block = ranks.controls().block(0);
    static std::byte memory[0x4000];
    shm::LastRegion last;
    std::atomic<int> noting{2};
    ranks.run([&](RankCore& core) {
        if (core.me < 2) {
            for (int i = 0; i < notes; ++i) {
                const std::uint64_t first = 0x1000 * (core.me + 2 * static_cast<std::uint64_t>(i % 2));
                last.note(0, first, first + 0x1000 - 0x100 * core.me, memory + first);
            }
            --noting;
            return;
        }
        while (noting.load() > 0)
            for (std::uint64_t at = 0; at < sizeof memory; at += 0x80) {
                std::byte* const found = last.find(block, at, 8);
                ASSERT_TRUE(found == nullptr || found == memory + at);
                ASSERT_TRUE(found == nullptr || at % 0x2000 <= 0x1000 || at % 0x1000 < 0xf00);
            }
    });
}

}  // namespace
}  // namespace osc::test
