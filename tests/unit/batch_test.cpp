// Batches of updates: order, stripes that share a bucket, and a stripe whose holder died.
#include "local/batch.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "base/fault.h"
#include "core/epoch.h"
#include "sync/stripe.h"
#include "thread_ranks.h"

namespace osc::test {
namespace {

// Appends the operand's digit, so that the order shows.
void append(void* target, const void* operand, std::size_t) {
    auto& word = *static_cast<std::uint64_t*>(target);
    word = 10 * word + *static_cast<const std::uint64_t*>(operand);
}

shm::ElementUpdate append_to(std::uint64_t& word, std::uint64_t digit) {
    return {reinterpret_cast<std::byte*>(&word), &append, {digit, 0, nullptr}};
}

TEST(Batch, KeepsTheOrderOfUpdatesOfOneElement) {
    Ranks ranks(2);
    auto& stripes = ranks.controls().block(1).stripes;
    shm::Batch batch(0, 2, ranks.lives());
    std::uint64_t words[2] = {};
    // Two stripes with one key: each add() performs what the bucket has for the other.
    for (const std::uint64_t digit : {1, 2, 3}) {
        batch.add(stripes[0].holder, 7, append_to(words[0], digit));
        batch.add(stripes[1].holder, 7, append_to(words[1], digit));
    }
    EXPECT_FALSE(batch.is_empty());
    EXPECT_EQ(words[1], 12u);
    EXPECT_EQ(batch.finish(), Fault::None);
    EXPECT_TRUE(batch.is_empty());
    EXPECT_EQ(words[0], 123u);
    EXPECT_EQ(words[1], 123u);
    for (const shm::Stripe& stripe : stripes)
        EXPECT_EQ(stripe.holder, 0u);
}

TEST(Batch, PerformsAFullBucket) {
    Ranks ranks(2);
    std::atomic<std::uint32_t>& stripe = ranks.controls().block(1).stripes[3].holder;
    shm::Batch batch(0, 2, ranks.lives());
    std::uint64_t word = 0;
    for (int i = 0; i < 1000; ++i) {
        const shm::ElementUpdate add = {
            reinterpret_cast<std::byte*>(&word), op::kernel(Op::Sum, Basic::U64), {1, 0, nullptr}};
        batch.add(stripe, 3, add);
    }
    EXPECT_GT(word, 900u);
    EXPECT_LT(word, 1000u);
    EXPECT_EQ(batch.finish(), Fault::None);
    EXPECT_EQ(word, 1000u);
}

TEST(Batch, SwapsOnlyWhatIsEqual) {
    Ranks ranks(2);
    std::atomic<std::uint32_t>& stripe = ranks.controls().block(1).stripes[0].holder;
    std::uint64_t word = 4;
    std::uint64_t results[2] = {};
    const auto swap = [&](std::uint64_t origin, std::uint64_t compare, std::uint64_t& result) {
        return shm::ElementUpdate{
            reinterpret_cast<std::byte*>(&word), &shm::swap<std::uint64_t>, {origin, compare, &result}};
    };
    shm::Batch batch(0, 2, ranks.lives());
    batch.add(stripe, 0, swap(5, 4, results[0]));
    batch.add(stripe, 0, swap(6, 4, results[1]));
    EXPECT_EQ(batch.finish(), Fault::None);
    EXPECT_EQ(word, 5u);
    EXPECT_EQ(results[0], 4u);
    EXPECT_EQ(results[1], 5u);
}

// Operations on memory of "another" process: process_vm_* reaches this one as well. Displacements are addresses.
struct Unmapped {
    Unmapped() : ranks(2), batch(0, 2, ranks.lives()) {}
    void add(const op::Simple& what, const void* address, std::size_t process = 1) {
        batch.unmapped(process, {::getpid(), 0, {ranks.controls().block(1), 0, ranks.lives()}})
            .add(what, static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(address)));
    }
    void append(std::uint64_t& word, std::uint64_t digit) {
        const Update how{Basic::U64, Op::Sum, &test::append, nullptr, 8};
        add({op::OpKind::Accumulate, 8, 0, &digit, nullptr, &how}, &word);
    }
    void put(std::uint64_t& word, std::uint64_t value) { add({op::OpKind::Put, 8, 0, &value}, &word); }
    void get(const std::uint64_t& word, std::uint64_t& to) { add({op::OpKind::Get, 8, 0, nullptr, &to}, &word); }
    void finish() {
        EXPECT_EQ(batch.finish(), Fault::None);
        for (const shm::Stripe& stripe : ranks.controls().block(1).stripes)
            EXPECT_EQ(stripe.holder, 0u);
    }

    Ranks ranks;
    shm::Batch batch;
};

TEST(Batch, UpdatesMemoryThatIsNotMapped) {
    Unmapped there;
    std::vector<std::uint64_t> words(4096);
    words[1] = 7;
    // Elements that are near each other, twice each, and then some that lie too far apart to be read together.
    for (const std::size_t last : {std::size_t{2}, words.size() - 1}) {
        for (const std::uint64_t digit : {1, 2, 3}) {
            there.append(words[0], digit);
            there.append(words[last], digit);
        }
        EXPECT_EQ(words[last], 0u);
        there.finish();
        EXPECT_EQ(words[last], 123u);
    }
    EXPECT_EQ(words[0], 123123u);
    EXPECT_EQ(words[1], 7u);
    EXPECT_EQ(words[3], 0u);
}

// Elements of another width come behind those that a batch has, also where they overlap.
TEST(Batch, UpdatesOverlappingElementsThatAreNotMapped) {
    Unmapped there;
    std::vector<std::byte> bytes(64 * 1024);
    const auto add = [&](std::size_t at, unsigned width, std::uint64_t operand) {
        const Update sum = update_of(Op::Sum, width == 8 ? Basic::U64 : Basic::U32);
        there.add({op::OpKind::Accumulate, width, 0, &operand, nullptr, &sum}, bytes.data() + at);
    };
    add(0, 8, 1);
    add(4, 4, 2);
    add(0, 8, 3);
    add(4, 8, 5);
    add(60 * 1024, 8, 9);
    there.finish();
    std::uint64_t first = 0;
    std::uint32_t third = 0;
    std::memcpy(&first, bytes.data(), 8);
    std::memcpy(&third, bytes.data() + 8, 4);
    EXPECT_EQ(first, 4u + (std::uint64_t{7} << 32));
    EXPECT_EQ(third, 0u);
    EXPECT_EQ(bytes[60 * 1024], std::byte{9});
}

// The bytes between two elements are read along only where they can be.
TEST(Batch, UpdatesElementsOnBothSidesOfAHole) {
    Unmapped there;
    constexpr std::size_t kPage = 4096;
    void* const pages = ::mmap(nullptr, 3 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(pages, MAP_FAILED);
    auto* const words = static_cast<std::uint64_t*>(pages);
    ASSERT_EQ(::munmap(words + 512, kPage), 0);
    std::uint64_t& before = words[511];
    std::uint64_t& behind = words[1024];
    for (const std::uint64_t digit : {1, 2}) {
        there.append(before, digit);
        there.append(behind, digit);
    }
    there.finish();
    EXPECT_EQ(before, 12u);
    EXPECT_EQ(behind, 12u);
    ::munmap(pages, 3 * kPage);
}

// More operands than a batch has room for, each of another value and, by swaps, of another comparison.
TEST(Batch, KeepsTheOperandsOfUnmappedOperations) {
    Unmapped there;
    const Update swap{Basic::U64, Op::None, nullptr, op::kernel(Op::Replace, Basic::U64), 8};
    const Update sum = update_of(Op::Sum, Basic::U64);
    std::vector<std::uint64_t> words(3000), results(3000);
    for (std::size_t i = 0; i < words.size(); ++i)
        words[i] = i;
    for (std::uint64_t i = 0; i < words.size(); ++i) {
        const std::uint64_t compare = i - i % 2;
        const std::uint64_t next = 10 * i;
        Update how = swap;
        how.compare = &compare;
        there.add({op::OpKind::CompareAndSwap, 8, 0, &next, &results[i], &how}, &words[i]);
        there.add({op::OpKind::Accumulate, 8, 0, &i, nullptr, &sum}, &words[i]);
    }
    there.finish();
    for (std::uint64_t i = 0; i < words.size(); ++i) {
        ASSERT_EQ(results[i], i);
        ASSERT_EQ(words[i], (i % 2 == 0 ? 10 * i : i) + i);
    }
}

TEST(Batch, MovesMemoryThatIsNotMapped) {
    Unmapped there;
    std::vector<std::uint64_t> words(6000), here(6000);
    // More than one call of the system moves, and more operands than there is room for.
    for (std::size_t i = 0; i < words.size(); i += 2)
        there.put(words[i], i + 1);
    EXPECT_FALSE(there.batch.is_empty());
    there.finish();
    for (std::size_t i = 0; i < words.size(); ++i)
        ASSERT_EQ(words[i], i % 2 == 0 ? i + 1 : 0) << i;
    for (std::size_t i = 0; i < words.size(); i += 2)
        there.get(words[i], here[i]);
    there.finish();
    EXPECT_TRUE(there.batch.is_empty());
    EXPECT_EQ(here, words);
    // Adjacent puts, and two of one place: the later one stays.
    for (const std::size_t at : {1, 2, 1, 2})
        there.put(words[at], at + 10);
    there.put(words[2], 13);
    there.put(words[3], 14);
    there.finish();
    EXPECT_EQ(std::vector<std::uint64_t>(&words[0], &words[5]), (std::vector<std::uint64_t>{1, 11, 13, 14, 5}));
}

// The operations on that process are lost, those on another one are not, nor the next ones.
TEST(Batch, ReportsMemoryThatCannotBeReached) {
    Unmapped there;
    std::uint64_t word = 0;
    auto* const nowhere = reinterpret_cast<std::uint64_t*>(std::uintptr_t{8});
    const Update sum = update_of(Op::Sum, Basic::U64);
    const std::uint64_t four = 4;
    there.append(*nowhere, 1);
    there.add({op::OpKind::Accumulate, 8, 0, &four, nullptr, &sum}, &word, 0);
    EXPECT_EQ(there.batch.finish(), Fault::Range);
    EXPECT_EQ(word, 4u);
    there.finish();
    there.append(word, 4);
    there.finish();
    EXPECT_EQ(word, 44u);
    std::uint64_t back = 0;
    there.get(*nowhere, back);
    EXPECT_EQ(there.batch.finish(), Fault::Range);
    there.get(word, back);
    there.finish();
    EXPECT_EQ(back, 44u);
}

// Adds one to the word at byte `disp` of rank `target`: to its lower half, of a type without fast path.
bool add_if_open(Core& core, int target, std::int64_t disp = 0, Basic basic = Basic::U16) {
    static const std::uint64_t one = 1;
    const Update how = update_of(Op::Sum, basic);
    return epoch::try_simple(core, target, {op::OpKind::Accumulate, how.width, disp, &one, nullptr, &how});
}
// The same as an entry point does it, which opens the target.
bool add(Core& core, std::uint32_t target, std::int64_t disp = 0, Basic basic = Basic::U16) {
    const auto rank = static_cast<int>(target);
    return add_if_open(core, rank, disp, basic) || (epoch::opens(core, target) && add_if_open(core, rank, disp, basic));
}
// The same by an update that has a fast path.
bool quick_add(Core& core, std::uint32_t target) {
    return add(core, target, 0, Basic::U64);
}

// Updates word `word` of rank `rank` so often that the last updates are batched.
std::uint64_t make_long(Core& core, std::uint32_t rank, std::int64_t word = 0) {
    std::uint64_t updates = 0;
    while (!core.target(rank).batched) {
        EXPECT_TRUE(add(core, rank, word * 8));
        ++updates;
    }
    return updates;
}

// The updates of that stripe are lost, those of the other are not; the call that completes operations returns the
// fault, once.
TEST(Batch, ReportsADeadHolderOfAStripeWhenOperationsAreCompleted) {
    const Deadline deadline(60);
    const Waiting waiting(10, 1, 10);
    using reach::Completion;
    const std::pair<std::uint32_t, Completion> flushes[] = {{1, Completion::AtTarget},
                                                            {1, Completion::AtOrigin},
                                                            {Core::kEveryTarget, Completion::AtTarget},
                                                            {Core::kEveryTarget, Completion::AtOrigin}};
    for (const auto& [flushed, until] : flushes) {
        Ranks ranks(3, 2048);
        RankCore& core = ranks.core(0);
        ASSERT_EQ(epoch::lock_all(core, 0), Fault::None);
        const std::uint64_t updates = make_long(core, 1, 1024);
        for (int i = 0; i < 8; ++i)
            ASSERT_TRUE(add(core, 1));
        EXPECT_EQ(core.incomplete, 1u);
        EXPECT_EQ(ranks.memory(1)[0], 0u);

        std::uint32_t dead = 0;
        ASSERT_TRUE(sync::stripe_lock(ranks.controls().block(1).stripe_of(0), 2, ranks.lives(), dead));
        ranks.lives().kill(2);
        epoch::end_run(core);
        EXPECT_EQ(core.incomplete, 1u);
        EXPECT_EQ(ranks.memory(1)[1024], updates);
        EXPECT_EQ(ranks.memory(1)[0], 0u);
        EXPECT_EQ(epoch::flush(core, flushed, until), Fault::Dead);
        EXPECT_NE(std::string(base::fault_text()).find("rank 2 died in the middle of an accumulate"),
                  std::string::npos);
        EXPECT_EQ(core.incomplete, 0u);
        EXPECT_EQ(epoch::flush(core, flushed, until), Fault::None);
        EXPECT_EQ(epoch::unlock_all(core), Fault::None);
    }
}

// The general path then finds it too, and reports it.
TEST(Batch, AnUpdateOutsideABatchLeavesADeadHolderToTheGeneralPath) {
    const Deadline deadline(60);
    Ranks ranks(3);
    RankCore& core = ranks.core(0);
    ASSERT_EQ(epoch::lock_all(core, 0), Fault::None);
    ASSERT_EQ(epoch::open_target(core, core.target(1)), Fault::None);
    std::atomic<std::uint32_t>& stripe = ranks.controls().block(1).stripe_of(0);
    EXPECT_TRUE(add(core, 1));
    EXPECT_EQ(stripe, 0u);
    stripe = 3;
    ranks.lives().kill(2);
    EXPECT_FALSE(add(core, 1));
    EXPECT_EQ(ranks.memory(1)[0], 1u);
    EXPECT_EQ(epoch::unlock_all(core), Fault::None);
}

// Nothing is known of a target before the first operation, and nothing may happen before it is open.
TEST(Batch, LeavesATargetThatIsNotOpenToTheGeneralPath) {
    Ranks ranks(2);
    RankCore& core = ranks.core(0);
    ASSERT_EQ(epoch::lock_all(core, 0), Fault::None);
    for (const Basic basic : {Basic::U16, Basic::U64}) {
        EXPECT_FALSE(add_if_open(core, 1, 0, basic));
        EXPECT_FALSE(add_if_open(core, -1, 0, basic));
        EXPECT_FALSE(add_if_open(core, 2, 0, basic));
    }
    Target& target = core.target(1);
    EXPECT_FALSE(add_if_open(core, 1));
    EXPECT_FALSE(add_if_open(core, 1, 0, Basic::U64));
    ASSERT_EQ(epoch::open_target(core, target), Fault::None);
    for (const std::int64_t outside :
         {std::int64_t{-8}, std::int64_t{1} << 40, std::numeric_limits<std::int64_t>::max()})
        EXPECT_FALSE(add_if_open(core, 1, outside)) << outside;
    EXPECT_EQ(ranks.memory(1)[0], 0u);
    EXPECT_TRUE(add_if_open(core, 1));
    EXPECT_TRUE(add_if_open(core, 1, 0, Basic::U64));
    // The network's provider updates all elements of such a window.
    core.provider_atomics = true;
    EXPECT_FALSE(add_if_open(core, 1));
    EXPECT_FALSE(add_if_open(core, 1, 0, Basic::U64));
    core.provider_atomics = false;
    EXPECT_EQ(ranks.memory(1)[0], 2u);
    EXPECT_EQ(epoch::unlock_all(core), Fault::None);
}

// Each kind of operation, with more than one element where it may have some. Updates of several stripes are left to the
// general path, which would perform the first of them again if the holder of a later one died.
TEST(Batch, PerformsEveryKindOnAnOpenTarget) {
    Ranks ranks(2, 2048);
    RankCore& core = ranks.core(0);
    ASSERT_EQ(epoch::lock_all(core, 0), Fault::None);
    ASSERT_EQ(epoch::open_target(core, core.target(1)), Fault::None);
    const std::int64_t edge = (std::int64_t{1} << shm::kStripeShift) - 8;
    const std::int64_t disp = edge - 8;
    std::uint64_t* const there = &ranks.memory(1)[static_cast<std::size_t>(disp) / 8];
    const std::array<std::uint64_t, 2> values{7, 9};
    const std::array<std::uint64_t, 2> masks{2, 8};
    std::array<std::uint64_t, 2> back{};
    const Update how = update_of(Op::Bxor, Basic::U64);
    using enum op::OpKind;
    EXPECT_TRUE(epoch::try_simple(core, 1, {Put, 16, disp, values.data()}));
    EXPECT_TRUE(epoch::try_simple(core, 1, {Accumulate, 16, disp, masks.data(), nullptr, &how}));
    EXPECT_TRUE(epoch::try_simple(core, 1, {GetAccumulate, 16, disp, masks.data(), back.data(), &how}));
    EXPECT_EQ(back, (std::array<std::uint64_t, 2>{5, 1}));
    EXPECT_TRUE(epoch::try_simple(core, 1, {Get, 16, disp, nullptr, back.data()}));
    EXPECT_EQ(back, values);
    const std::uint64_t other = 3;
    for (const std::uint64_t& compare : {other, values[0]}) {
        const Update swap{Basic::U64, Op::None, nullptr, how.copy, 8, &compare};
        EXPECT_TRUE(epoch::try_simple(core, 1, {CompareAndSwap, 8, disp, &other, back.data(), &swap}));
    }
    EXPECT_EQ(back[0], 7u);
    EXPECT_EQ(there[0], 3u);
    EXPECT_EQ(there[1], 9u);
    EXPECT_FALSE(epoch::try_simple(core, 1, {Accumulate, 16, edge, masks.data(), nullptr, &how}));
    EXPECT_EQ(there[1], 9u);
    EXPECT_TRUE(epoch::try_simple(core, 1, {Put, 16, edge, values.data()}));
    EXPECT_EQ(there[2], 9u);
    EXPECT_FALSE(core.target(1).batched);
    EXPECT_EQ(epoch::unlock_all(core), Fault::None);
}

TEST(Batch, EveryFlushAllowsTheFastPathOfTheNext) {
    for (const bool all : {false, true}) {
        Ranks ranks(2);
        RankCore& core = ranks.core(0);
        ASSERT_EQ(epoch::lock_all(core, 0), Fault::None);
        make_long(core, 1);
        EXPECT_FALSE(epoch::may_order_only(core, 1));
        epoch::end_run(core);
        EXPECT_EQ(epoch::flush(core, all ? Core::kEveryTarget : 1, reach::Completion::AtOrigin), Fault::None);
        EXPECT_TRUE(epoch::may_order_only(core, 1));
        EXPECT_EQ(epoch::unlock_all(core), Fault::None);
    }
}

// Other operations on a target find it open between the updates of a short run, and again after a batch.
TEST(Batch, OtherOperationsBetweenUpdatesKeepTheirFastPaths) {
    Ranks ranks(2);
    RankCore& core = ranks.core(0);
    ASSERT_EQ(epoch::lock_all(core, 0), Fault::None);
    Target& target = core.target(1);
    std::uint64_t updates = 0;
    int closed = 0;
    for (; updates < 640; ++updates) {
        ASSERT_TRUE(add(core, 1));
        if (target.fast_limit != 0) continue;
        ++closed;
        ASSERT_EQ(epoch::open_target(core, target), Fault::None);
        EXPECT_EQ(ranks.memory(1)[0], updates + 1);
        EXPECT_NE(target.fast_limit, 0u);
    }
    EXPECT_EQ(closed, 20);
    EXPECT_EQ(epoch::unlock_all(core), Fault::None);
    EXPECT_EQ(ranks.memory(1)[0], updates);
}

// A long run takes quick updates of its targets along; in a run that is still short they happen at once.
TEST(Batch, LongRunsTakeQuickUpdatesAlong) {
    Ranks ranks(2);
    RankCore& core = ranks.core(0);
    ASSERT_EQ(epoch::lock_all(core, 0), Fault::None);
    const Target& target = core.target(1);
    ASSERT_EQ(epoch::open_target(core, core.target(1)), Fault::None);
    ASSERT_TRUE(add(core, 1));
    for (int i = 0; i < 100; ++i)
        ASSERT_TRUE(quick_add(core, 1));
    EXPECT_FALSE(target.batched);
    EXPECT_EQ(ranks.memory(1)[0], 101u);
    std::uint64_t updates = 101 + make_long(core, 1);
    ASSERT_TRUE(quick_add(core, 1));
    EXPECT_LT(ranks.memory(1)[0], ++updates);
    epoch::end_run(core);
    ASSERT_EQ(epoch::flush(core, 1), Fault::None);
    EXPECT_EQ(ranks.memory(1)[0], updates);
    // Behind a long run the next one is batched from its start.
    ASSERT_TRUE(quick_add(core, 1));
    EXPECT_EQ(ranks.memory(1)[0], updates);
    epoch::end_run(core);
    EXPECT_EQ(ranks.memory(1)[0], ++updates);
    ASSERT_EQ(epoch::flush(core, 1), Fault::None);
    // That one was short, so the target opens again.
    EXPECT_TRUE(quick_add(core, 1));
    EXPECT_EQ(ranks.memory(1)[0], ++updates);
    EXPECT_FALSE(target.batched);
    EXPECT_NE(target.fast_limit, 0u);
    EXPECT_EQ(epoch::unlock_all(core), Fault::None);
}

// Two processes of this node whose ranks differ by a multiple of the number of buckets.
TEST(Batch, ProcessesPlacedCyclicallyShareNoBucket) {
    constexpr std::uint32_t kFar = 16;
    Ranks ranks(kFar + 1);
    RankCore& core = ranks.core(0);
    const shm::LocalRanks local{{0, kFar}};
    core.controls.local_ranks = &local;
    core.epoch.access = Access::LockAll;  // lock_all() would need the other nodes
    const std::uint64_t updates = make_long(core, kFar);
    const std::uint64_t before = ranks.memory(kFar)[0];
    EXPECT_LT(before, updates);
    for (int i = 0; i < 8; ++i) {
        ASSERT_TRUE(add(core, 0));
        ASSERT_TRUE(add(core, kFar));
    }
    EXPECT_EQ(ranks.memory(0)[0], 0u);
    EXPECT_EQ(ranks.memory(kFar)[0], before);
    epoch::end_run(core);
    EXPECT_EQ(ranks.memory(0)[0], 8u);
    EXPECT_EQ(ranks.memory(kFar)[0], updates + 8);
}

// MPI_THREAD_MULTIPLE: threads share the run, and no lock protects it.
TEST(Batch, ThreadsDoNotTouchTheRun) {
    Ranks ranks(2);
    RankCore& core = ranks.core(0);
    core.threaded = true;
    ASSERT_EQ(epoch::lock_all(core, 0), Fault::None);
    ASSERT_EQ(epoch::open_target(core, core.target(1)), Fault::None);
    const auto update = [&] {
        for (int i = 0; i < 200; ++i) {
            EXPECT_TRUE(add(core, 1));
            epoch::end_run_if_any(core);
            EXPECT_EQ(epoch::flush(core, 1, reach::Completion::AtOrigin), Fault::None);
        }
    };
    std::thread other(update);
    update();
    other.join();
    EXPECT_EQ(ranks.memory(1)[0], 400u);
    EXPECT_FALSE(core.in_run);
    EXPECT_EQ(epoch::unlock_all(core), Fault::None);
}

}  // namespace
}  // namespace osc::test
