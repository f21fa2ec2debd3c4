// The clocks of processes, as the calls of two or three of them move them.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "plugins/verify/process_order.h"

namespace osc::check {
namespace {

// Processes whose parts lie side by side, as in one window.
struct Job {
    explicit Job(std::uint32_t processes) : words(processes * words_of(processes)) {
        std::vector<std::byte*> parts;
        for (std::uint32_t i = 0; i < processes; ++i) {
            all.push_back(i);
            parts.push_back(reinterpret_cast<std::byte*>(words.data() + i * words_of(processes)));
        }
        for (std::uint32_t i = 0; i < processes; ++i)
            of.push_back(std::make_unique<ProcessOrder>(i, parts));
    }
    static std::size_t words_of(std::uint32_t processes) { return ProcessOrder::bytes_of_part(processes) / 8; }

    std::vector<std::uint64_t> words;
    std::vector<std::uint32_t> all;
    std::vector<std::unique_ptr<ProcessOrder>> of;
};

}  // namespace

TEST(ProcessOrder, AcquiresWhatTheOtherHasReleasedAndAcquired) {
    Job job(3);
    const std::uint64_t first = job.of[0]->release();
    job.of[1]->acquire(0);
    EXPECT_EQ(job.of[1]->acquired(0), first);
    job.of[2]->acquire(1);
    EXPECT_EQ(job.of[2]->acquired(0), 0u);  // process 1 has not released it
    job.of[1]->release();
    job.of[2]->acquire(1);
    EXPECT_EQ(job.of[2]->acquired(0), first);
    EXPECT_EQ(job.of[0]->acquired(1), 0u);
}

// A process that is ahead shows its later releases, but not to those that leave the earlier collective.
TEST(ProcessOrder, TellsCollectivesApart) {
    Job job(2);
    const std::uint64_t number = job.of[0]->enter(0);
    const std::uint64_t entered = job.of[0]->released();
    EXPECT_EQ(job.of[1]->enter(0), number);
    job.of[0]->leave(0, number, job.all);
    job.of[0]->release();
    job.of[1]->leave(0, number, job.all);
    EXPECT_EQ(job.of[1]->acquired(0), entered);
}

// What a target does behind its post is not ordered with the operations of the access epoch.
TEST(ProcessOrder, AcquiresThePostAlone) {
    Job job(3);
    const std::uint64_t before = job.of[2]->release();
    job.of[0]->acquire(2);
    const std::uint64_t posted = job.of[0]->post();
    job.of[2]->release();
    job.of[0]->acquire(2);
    job.of[0]->release();
    job.of[1]->acquire_post(0);
    EXPECT_EQ(job.of[1]->acquired(0), posted);
    EXPECT_EQ(job.of[1]->acquired(2), before);
    const std::uint64_t next = job.of[0]->post();
    job.of[1]->acquire_post(0);
    EXPECT_EQ(job.of[1]->acquired(0), next);
}

TEST(ProcessOrder, TakesNothingFromAProcessThatHasNotEntered) {
    Job job(2);
    for (int i = 0; i < 1000; ++i) {
        const std::uint64_t number = job.of[0]->enter(0);
        job.of[0]->leave(0, number, job.all);
        EXPECT_EQ(job.of[0]->acquired(1), static_cast<std::uint64_t>(i));
        job.of[1]->enter(0);
        job.of[0]->leave(0, number, job.all);
        EXPECT_EQ(job.of[0]->acquired(1), static_cast<std::uint64_t>(i + 1));
    }
}

// Whose clock of the collective is lost: its last release is a later one.
TEST(ProcessOrder, TakesTheLastReleaseForALostOne) {
    Job job(2);
    const std::uint64_t number = job.of[1]->enter(0);
    for (int i = 0; i < 1000; ++i)
        job.of[0]->enter(0);
    job.of[1]->leave(0, number, job.all);
    EXPECT_EQ(job.of[1]->acquired(0), job.of[0]->released());
}

// The places of rows are shared; what stands in a place is never taken for a collective of another row.
TEST(ProcessOrder, SharesPlacesBetweenRows) {
    Job job(2);
    for (std::uint64_t row = 0; row < 300; ++row) {
        const std::uint64_t number = job.of[0]->enter(row);
        const std::uint64_t entered = job.of[0]->released();
        EXPECT_EQ(job.of[1]->enter(row), number);
        job.of[1]->leave(row, number, job.all);
        EXPECT_GE(job.of[1]->acquired(0), entered);
    }
}

TEST(ProcessOrder, SharedLocksFollowExclusiveOnesAlone) {
    Job job(3);
    const std::uint64_t shared = job.of[0]->release();
    job.of[0]->release_lock(1, 2, false);
    job.of[1]->acquire_lock(1, 2, false);
    EXPECT_EQ(job.of[1]->acquired(0), 0u);
    job.of[1]->acquire_lock(2, 2, true);  // of another window
    job.of[1]->acquire_lock(1, 1, true);  // of another target
    EXPECT_EQ(job.of[1]->acquired(0), 0u);
    job.of[1]->acquire_lock(1, 2, true);
    EXPECT_EQ(job.of[1]->acquired(0), shared);
    const std::uint64_t exclusive = job.of[1]->release();
    job.of[1]->release_lock(1, 2, true);
    job.of[2]->acquire_lock(1, 2, false);
    EXPECT_EQ(job.of[2]->acquired(1), exclusive);
    EXPECT_EQ(job.of[2]->acquired(0), shared);
}

TEST(ProcessOrder, ShowsAccessesOnceAndSaysWhenSomeAreLost) {
    Job job(2);
    std::uint64_t shown = 0;
    std::uint64_t seen = 0;
    const auto show = [&](int count) {
        for (int i = 0; i < count; ++i) {
            RemoteAccess access;
            access.site = ++shown;
            job.of[0]->show(access);
        }
    };
    const auto read = [&] {
        return job.of[1]->read(0, [&](const RemoteAccess& access) {
            EXPECT_GT(access.site, seen);
            seen = access.site;
        });
    };
    for (int round = 0; round < 5; ++round) {
        show(3000);
        EXPECT_TRUE(read());
        EXPECT_EQ(seen, shown);
    }
    show(10000);
    EXPECT_FALSE(read());
    EXPECT_EQ(seen, shown);
    EXPECT_TRUE(read());
}

}  // namespace osc::check
