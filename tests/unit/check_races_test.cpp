// Conflict detection on histories that a test writes: the epochs, what orders accesses, and the rules of accumulates.
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "check_history.h"
#include "check_sites.h"
#include "plugins/verify/races.h"

namespace osc::check {
namespace {

TEST(Races, FenceEpochs) {
    History history(3);
    history.put(1, 10, {0, 8});
    history.put(2, 20, {4, 12});
    history.get(2, 21, {16, 24});
    auto found = history.fence();
    ASSERT_EQ(sites_of(found), (Sites{{10, 20}}));
    EXPECT_EQ(found[0].where, (Bytes{4, 8}));
    EXPECT_EQ(found[0].origins[0], 1u);
    EXPECT_EQ(found[0].origins[1], 2u);
    EXPECT_EQ(found[0].target, kTarget);
    EXPECT_EQ(found[0].clash, Clash::Update);
    // The next epoch: ordered after the first, whatever it accesses.
    history.get(1, 11, {0, 24});
    history.get(2, 22, {0, 24});
    EXPECT_EQ(sites_of(history.fence()), kNone);
    history.put(1, 12, {0, 8});
    history.get(0, 1, {7, 9});
    EXPECT_EQ(sites_of(history.fence()), (Sites{{1, 12}}));
    EXPECT_TRUE(history.own.empty());
}

TEST(Races, EachPairOfSitesOnce) {
    History history(3);
    for (int epoch = 0; epoch < 3; ++epoch) {
        for (std::int64_t i = 0; i < 100; ++i)
            for (std::uint32_t rank = 0; rank < 3; ++rank)
                history.put(rank, 7, {8 * i, 8 * i + 8});
        const auto found = history.fence();
        ASSERT_EQ(sites_of(found), epoch == 0 ? (Sites{{7, 7}}) : kNone);
        if (epoch > 0) continue;
        EXPECT_EQ(found[0].origins[0], 0u);
        EXPECT_EQ(found[0].origins[1], 1u);
        EXPECT_EQ(found[0].where, (Bytes{0, 800}));
    }
}

TEST(Races, SharedLocksByTime) {
    History history(3);
    history.lock(1);
    history.lock(2);
    history.put(1, 10, {0, 8});
    history.put(2, 20, {0, 8});  // the put of 1 is pending
    history.flush(1);
    history.flush(2);
    history.put(1, 11, {8, 16});
    history.flush(1);
    history.put(2, 21, {8, 16});  // that of 1 is complete: something may order them
    history.unlock(1);
    history.unlock(2);
    EXPECT_EQ(sites_of(history.fence()), (Sites{{10, 20}}));
}

TEST(Races, ExclusiveLocksOrder) {
    History history(3);
    history.lock(1, true);
    history.put(1, 10, {0, 8});
    // A deferred MPI_Win_lock returns, and operations are issued, before the lock is granted.
    history.lock(2, true);
    history.put(2, 20, {0, 8});
    history.unlock(1);
    history.unlock(2);
    history.lock(0);
    history.put(0, 1, {0, 8});
    history.lock(1, true);
    history.get(1, 11, {0, 8});
    history.unlock(0);
    history.unlock(1);
    EXPECT_EQ(sites_of(history.fence()), kNone);
}

TEST(Races, ClocksThatCannotBeCompared) {
    History history(3);
    history.clock_of[2] = 2;
    history.lock(1);
    history.lock(2);
    history.put(1, 10, {0, 8});
    history.put(2, 20, {0, 8});
    history.unlock(1);
    history.unlock(2);
    EXPECT_EQ(sites_of(history.fence()), kNone);
    history.put(1, 11, {0, 8});
    history.put(2, 21, {0, 8});
    EXPECT_EQ(sites_of(history.fence()), (Sites{{11, 21}}));
}

TEST(Races, ExposureEpochs) {
    History history(3);
    history.post({1, 2});
    history.start(1);
    history.put(1, 10, {0, 8});
    history.complete(1);
    history.start(2);  // after 1 completed, but the target has not waited
    history.put(2, 20, {0, 8});
    history.complete(2);
    history.start(1);  // deferred: before the second post
    history.put(1, 11, {0, 8});
    history.post({1});
    history.complete(1);
    history.post({2});
    history.start(2);
    history.put(2, 21, {0, 8});
    history.complete(2);
    EXPECT_EQ(sites_of(history.fence()), (Sites{{10, 20}}));
    history.post({2});
    history.start(2);
    history.put(2, 22, {0, 8});
    history.complete(2);
    EXPECT_EQ(sites_of(history.fence()), kNone);
}

TEST(Races, DeferredStartAfterALock) {
    History history(3);
    history.start(1);  // deferred
    history.put(1, 10, {0, 8});
    history.lock(2);
    history.put(2, 20, {0, 8});
    history.unlock(2);
    history.post({1});  // the target learnt that 2 is done
    history.complete(1);
    EXPECT_EQ(sites_of(history.fence()), kNone);
}

TEST(Races, OneOrigin) {
    History history(2);
    history.lock(1);
    history.put(1, 1, {0, 8});
    history.put(1, 2, {4, 12});
    history.get(1, 3, {8, 16});
    EXPECT_EQ(sites_of(history.own), (Sites{{1, 2}, {2, 3}}));
    EXPECT_EQ(history.own[0].where, (Bytes{4, 8}));
    history.own.clear();
    history.flush(1);
    history.put(1, 4, {0, 8});
    history.at(1).complete_results(kTarget, history.tick());  // a local flush
    history.get(1, 5, {0, 8});
    EXPECT_EQ(sites_of(history.own), (Sites{{4, 5}}));
    history.own.clear();
    history.flush(1);
    history.get(1, 6, {0, 8});
    history.at(1).complete_results(kTarget, history.tick());
    history.put(1, 7, {0, 8});
    EXPECT_EQ(sites_of(history.own), kNone);
    history.flush(1);
    history.get(1, 8, {0, 8});
    history.put(1, 9, {0, 8});
    EXPECT_EQ(sites_of(history.own), (Sites{{8, 9}}));
    history.own.clear();
    history.flush(1);
    // A request may complete it where the checker does not see it.
    history.access(1, 10, op::OpKind::Get, {0, 8}, Op::None, Basic::I32, true);
    history.put(1, 11, {0, 8});
    EXPECT_EQ(sites_of(history.own), kNone);
    history.access(1, 12, op::OpKind::Put, {0, 8}, Op::None, Basic::I32, true);
    EXPECT_EQ(sites_of(history.own), (Sites{{11, 12}}));
    history.unlock(1);
    EXPECT_EQ(sites_of(history.fence()), kNone);
}

TEST(Races, Accumulates) {
    History history(3);
    history.sum(1, 10, {0, 8});
    history.sum(2, 20, {0, 8});
    EXPECT_EQ(sites_of(history.fence()), kNone);
    history.sum(1, 11, {0, 8});
    history.sum(2, 21, {4, 8}, Op::Max);
    auto found = history.fence();
    ASSERT_EQ(sites_of(found), (Sites{{11, 21}}));
    EXPECT_EQ(found[0].clash, Clash::Operations);
    history.sum(1, 12, {0, 8});
    history.access(2, 22, op::OpKind::GetAccumulate, {4, 8}, Op::NoOp);
    history.access(2, 23, op::OpKind::CompareAndSwap, {0, 4});
    EXPECT_EQ(sites_of(history.fence()), kNone);
    history.sum(1, 13, {0, 8});
    history.sum(2, 24, {0, 8}, Op::Sum, Basic::F32);
    found = history.fence();
    ASSERT_EQ(sites_of(found), (Sites{{13, 24}}));
    EXPECT_EQ(found[0].clash, Clash::Types);
    history.sum(1, 14, {0, 8});
    history.sum(2, 25, {2, 6});
    found = history.fence();
    ASSERT_EQ(sites_of(found), (Sites{{14, 25}}));
    EXPECT_EQ(found[0].clash, Clash::Elements);
    history.sum(1, 15, {0, 8});
    history.sum(2, 26, {0, 8}, Op::Sum, Basic::U32);
    EXPECT_EQ(sites_of(history.fence()), kNone);
    history.sum(1, 16, {0, 8});
    history.put(2, 27, {0, 4});
    history.get(0, 1, {4, 8});
    EXPECT_EQ(sites_of(history.fence()), (Sites{{1, 16}, {16, 27}}));
    history.access(1, 17, op::OpKind::GetAccumulate, {0, 8}, Op::NoOp);
    history.access(2, 28, op::OpKind::GetAccumulate, {0, 8}, Op::NoOp, Basic::F64);
    history.get(0, 2, {0, 8});
    EXPECT_EQ(sites_of(history.fence()), kNone);
    EXPECT_TRUE(history.own.empty());
}

// Work that grows with the number of operations, and not with its square: columns that lie between each other, by one
// origin and by two, and local flushes between them.
TEST(Races, ColumnsTakeFewComparisons) {
    constexpr std::int64_t kColumns = 3000;
    constexpr std::int64_t kRows = 8;
    const auto column = [](std::int64_t first) {
        std::vector<Bytes> bytes;
        for (std::int64_t row = 0; row < kRows; ++row)
            bytes.push_back({(row * 2 * kColumns + first) * 8, (row * 2 * kColumns + first) * 8 + 8});
        return bytes;
    };
    for (const bool flush : {false, true}) {
        History history(3, {}, 100 * kColumns);
        history.lock(1);
        for (std::int64_t i = 0; i < kColumns; ++i) {
            history.rows(1, 10, column(2 * i), Op::None, Basic::F64, op::OpKind::Put);
            history.rows(2, 20, column(2 * i + 1), Op::None, Basic::F64, op::OpKind::Put);
            if (flush) history.at(1).complete_results(kTarget, history.tick());
        }
        EXPECT_LT(history.at(1).compared(), 100u * kColumns);
        history.unlock(1);
        EXPECT_EQ(sites_of(history.fence()), kNone);
        EXPECT_FALSE(history.is_incomplete());
        EXPECT_TRUE(history.own.empty());
    }
    // The last one shares a byte with the first.
    History history(2);
    for (std::int64_t i = 0; i < kColumns; ++i)
        history.rows(1, 10, column(2 * i), Op::None, Basic::F64, op::OpKind::Put);
    history.put(1, 11, {kRows / 2 * 2 * kColumns * 8 + 7, kRows / 2 * 2 * kColumns * 8 + 16});
    EXPECT_EQ(sites_of(history.own), (Sites{{10, 11}}));
}

// The bytes of pairs with padding are parts of elements, which touch those of their neighbours.
TEST(Races, PairsWithPadding) {
    for (const Basic basic : {Basic::ShortInt, Basic::DoubleInt}) {
        History history(3);
        const std::int64_t first = basic == Basic::ShortInt ? 2 : 12;
        const std::int64_t begin = basic == Basic::ShortInt ? 4 : 16;
        history.rows(1, 10, {{0, first}, {begin, begin + first}}, Op::Minloc, basic);
        history.rows(2, 20, {{begin, begin + first}}, Op::Minloc, basic);
        EXPECT_EQ(sites_of(history.fence()), kNone);
        history.rows(1, 11, {{0, first}, {begin, begin + first}}, Op::Minloc, basic);
        history.rows(2, 21, {{begin, begin + first}}, Op::Maxloc, basic);
        EXPECT_EQ(sites_of(history.fence()), (Sites{{11, 21}}));
    }
}

TEST(Races, AccumulatesOfOneOrigin) {
    for (const bool ordered : {true, false}) {
        Promises promises;
        promises.ordered = ordered;
        History history(2, promises);
        history.sum(1, 10, {0, 8}, Op::Replace);
        history.sum(1, 11, {0, 8}, Op::Sum);
        EXPECT_EQ(sites_of(history.own), ordered ? kNone : (Sites{{10, 11}}));
        history.own.clear();
        history.sum(1, 12, {0, 8}, Op::Sum, Basic::I64);
        EXPECT_EQ(sites_of(history.own), (Sites{{10, 12}, {11, 12}}));
    }
    Promises given;
    given.one_op = true;
    History promised(2, given);
    promised.sum(1, 10, {0, 8});
    promised.access(1, 11, op::OpKind::GetAccumulate, {0, 8}, Op::NoOp);
    promised.access(1, 12, op::OpKind::CompareAndSwap, {0, 4});
    promised.sum(1, 13, {8, 16}, Op::Max);
    EXPECT_EQ(sites_of(promised.own), kNone);
    promised.sum(1, 14, {4, 12}, Op::Max);
    EXPECT_EQ(sites_of(promised.own), (Sites{{10, 14}}));
    promised.own.clear();
    promised.flush(1);
    promised.sum(1, 15, {0, 16}, Op::Prod);
    EXPECT_EQ(sites_of(promised.own), kNone);
    Promises same;
    same.same_op = true;
    History history(3, same);
    history.sum(1, 10, {0, 8});
    history.access(2, 20, op::OpKind::GetAccumulate, {0, 8}, Op::NoOp);
    EXPECT_EQ(sites_of(history.fence()), (Sites{{10, 20}}));
}

TEST(Races, InterleavedRows) {
    History history(3);
    for (std::int64_t i = 0; i < 1000; ++i) {
        history.put(1, 10, {16 * i, 16 * i + 8});
        history.put(2, 20, {16 * i + 8, 16 * i + 16});
    }
    EXPECT_EQ(sites_of(history.fence()), kNone);
    for (std::int64_t i = 0; i < 1000; ++i) {
        history.put(1, 11, {16 * i, 16 * i + 8});
        history.put(2, 21, {16 * i + 7, 16 * i + 15});
    }
    const auto found = history.fence();
    ASSERT_EQ(sites_of(found), (Sites{{11, 21}}));
    EXPECT_EQ(found[0].where, (Bytes{7, 8}));
}

// A million puts on few places, as one call site makes them in a loop, are kept once for each place.
TEST(Races, RepeatedPlaces) {
    std::vector<Conflict> found;
    AccessLog log(0, {});
    Operation operation;
    operation.call = "MPI_Put";
    operation.site.value = 1;
    log.lock(0, false);
    for (std::int64_t i = 0; i < 1'000'000; ++i) {
        operation.bytes = {{i % 500 * 16, i % 500 * 16 + 8}};
        log.add(operation, i, found);
    }
    log.complete(kEveryTarget, 1'000'000);
    EXPECT_EQ(log.take().at(0).size(), 500u);
    EXPECT_EQ(sites_of(found), (Sites{{1, 1}}));
    EXPECT_EQ(log.take_left_out(), 0u);
}

TEST(Races, BoundedMemory) {
    std::vector<Conflict> found;
    AccessLog log(0, {}, 100);
    Operation operation;
    operation.call = "MPI_Put";
    log.lock(0, false);
    for (std::int64_t i = 0; i < 1000; ++i) {
        operation.bytes = {{i * i * 8, i * i * 8 + 8}};
        operation.site.value = static_cast<std::uint64_t>(i);
        log.add(operation, i, found);
    }
    log.complete(kEveryTarget, 1000);
    EXPECT_EQ(log.take().at(0).size(), 100u);
    EXPECT_EQ(log.take_left_out(), 900u);
    EXPECT_EQ(log.take_left_out(), 0u);
    operation.exact = false;
    log.add(operation, 1001, found);
    EXPECT_EQ(log.take_left_out(), 1u);
    EXPECT_TRUE(found.empty());
}

TEST(Races, BoundedTime) {
    for (const std::uint64_t most : {10u, 1'000'000u}) {
        RaceFinder finder(0, {}, most);
        for (std::uint32_t origin = 0; origin < 2; ++origin) {
            Entries entries;
            for (std::int64_t i = 0; i < 100; ++i) {
                Entry entry;
                entry.access.site = origin;
                entry.access.world = World::Lock;
                entry.access.issued = 1000 * origin;
                entry.access.ended = 1000 * origin + 500;
                entry.pieces = {{0, 8, 0, 1}};
                entries.push_back(entry);
            }
            finder.add(origin, 1, std::move(entries));
        }
        EXPECT_TRUE(finder.find().empty());
        EXPECT_EQ(finder.take_incomplete(), most == 10);
        EXPECT_FALSE(finder.take_incomplete());
    }
}

// What another process has sent.
TEST(RacesMessage, AMessageThatIsNotWholeIsRefused) {
    Entry entry;
    entry.access.kind = op::OpKind::Accumulate;
    entry.access.op = Op::Sum;
    entry.access.basic = Basic::I32;
    entry.pieces = {{0, 4, 8, 2}};
    std::uint64_t clock = 0;
    Entries got;
    const Message whole = to_message(7, {entry});
    ASSERT_TRUE(from_message(whole, clock, got));
    EXPECT_EQ(clock, 7u);
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].access.op, Op::Sum);
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
        const Message cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes));
        EXPECT_EQ(from_message(cut, clock, got), bytes == sizeof clock) << bytes;
    }
    const auto refused = [&](const Entry& wrong) { return !from_message(to_message(7, {wrong}), clock, got); };
    Entry wrong = entry;
    wrong.access.op = Op::Count;
    EXPECT_TRUE(refused(wrong));
    wrong = entry;
    wrong.access.basic = Basic::Count;
    EXPECT_TRUE(refused(wrong));
    wrong = entry;
    wrong.access.call[sizeof wrong.access.call - 1] = 'x';
    EXPECT_TRUE(refused(wrong));
    wrong = entry;
    wrong.pieces.clear();
    EXPECT_TRUE(refused(wrong));
}

}  // namespace
}  // namespace osc::check
