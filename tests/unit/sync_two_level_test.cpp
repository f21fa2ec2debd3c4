// Two-level locks over words in ordinary memory: mutual exclusion, the cost of each call, and dead holders.
#include <array>
#include <deque>
#include <functional>
#include <random>

#include "sync/two_level.h"
#include "thread_ranks.h"

namespace osc::test {
namespace {

using sync::LockKind;
using sync::tally_of;
using sync::TwoLevel;

constexpr std::uint32_t kRanks = 4;

/// One rank's access to the words of all ranks; counts its atomics.
class Memory final : public sync::Words {
  public:
    using Row = std::array<std::atomic<std::uint64_t>, 2>;
    Memory(std::vector<Row>& rows, Lives& lives) : rows_(rows), lives_(lives) {}

    Fault add(std::uint32_t rank, Word word, std::uint64_t value, std::uint64_t& before) override {
        if (Fault fault = reach(rank); fault != Fault::None) return fault;
        before = at(rank, word).fetch_add(value);
        return Fault::None;
    }
    Fault swap(std::uint32_t rank, Word word, std::uint64_t expected, std::uint64_t wanted,
               std::uint64_t& before) override {
        if (Fault fault = reach(rank); fault != Fault::None) return fault;
        before = expected;
        at(rank, word).compare_exchange_strong(before, wanted);
        return Fault::None;
    }
    std::atomic<std::uint64_t>& at(std::uint32_t rank, Word word) {
        return rows_[rank][static_cast<std::size_t>(word)];
    }
    int taken() { return atomics_.exchange(0); }

  private:
    Fault reach(std::uint32_t rank) {
        ++atomics_;
        return lives_.alive(rank) ? Fault::None : base::fail(Fault::Dead, "rank %u died", rank);
    }
    std::vector<Row>& rows_;
    Lives& lives_;
    std::atomic<int> atomics_{0};
};

struct TwoLevelLock : ::testing::Test {
    struct Rank {
        Rank(TwoLevelLock& all, std::uint32_t rank)
            : memory(all.rows, all.lives), locks(memory, rank, kRanks, all.lives) {}
        Memory memory;
        TwoLevel locks;
    };

    Lives lives;
    std::vector<Memory::Row> rows{kRanks};
    std::deque<Rank> ranks;

    TwoLevelLock() {
        for (std::uint32_t rank = 0; rank < kRanks; ++rank)
            ranks.emplace_back(*this, rank);
    }
    TwoLevel& of(std::uint32_t rank) { return ranks[rank].locks; }
    void expect_free() const {
        for (const Memory::Row& row : rows)
            for (const auto& word : row)
                EXPECT_EQ(word.load(), 0u);
    }
    static void expect_done(Fault fault) { EXPECT_EQ(fault, Fault::None); }
    static void expect_dead(Fault fault, const char* text) {
        EXPECT_EQ(fault, Fault::Dead);
        EXPECT_STREQ(base::fault_text(), text);
    }
};

TEST_F(TwoLevelLock, CostsAFewAtomicsWithoutContention) {
    const auto cost = [&](auto&& call) {
        ranks[1].memory.taken();
        expect_done(call(of(1)));
        return ranks[1].memory.taken();
    };
    EXPECT_EQ(cost([](TwoLevel& l) { return l.lock(2, LockKind::Shared); }), 1);
    EXPECT_EQ(cost([](TwoLevel& l) { return l.unlock(2, LockKind::Shared); }), 1);
    EXPECT_EQ(cost([](TwoLevel& l) { return l.lock_all(); }), 1);
    EXPECT_EQ(cost([](TwoLevel& l) { return l.unlock_all(); }), 1);
    EXPECT_EQ(cost([](TwoLevel& l) { return l.lock(2, LockKind::Exclusive); }), 2);
    EXPECT_EQ(cost([](TwoLevel& l) { return l.lock(3, LockKind::Exclusive); }), 1);
    EXPECT_EQ(cost([](TwoLevel& l) { return l.unlock(2, LockKind::Exclusive); }), 1);
    EXPECT_EQ(cost([](TwoLevel& l) { return l.unlock(3, LockKind::Exclusive); }), 2);
    expect_free();
}

// A waiting process acquires the lock after the other one's release, and the words are zero in the end.
TEST_F(TwoLevelLock, ExcludesConflictingLocks) {
    using Step = std::function<Fault(TwoLevel&)>;
    struct Kind {
        Step take, give;
        bool exclusive, all;
    };
    const auto one = [](LockKind kind) {
        return Kind{[=](TwoLevel& l) { return l.lock(2, kind); }, [=](TwoLevel& l) { return l.unlock(2, kind); },
                    kind == LockKind::Exclusive, false};
    };
    const Kind kinds[] = {
        one(LockKind::Shared),
        one(LockKind::Exclusive),
        {[](TwoLevel& l) { return l.lock_all(); }, [](TwoLevel& l) { return l.unlock_all(); }, false, true}};
    const Deadline deadline(60);
    for (const Kind& first : kinds) {
        for (const Kind& second : kinds) {
            expect_done(first.take(of(1)));
            std::atomic<bool> had{false};
            std::thread other([&] {
                expect_done(second.take(of(3)));
                had = true;
                expect_done(second.give(of(3)));
            });
            if (first.exclusive || second.exclusive) {
                std::this_thread::sleep_for(std::chrono::milliseconds(20));
                EXPECT_FALSE(had.load());
            } else {
                while (!had.load())
                    std::this_thread::yield();
            }
            expect_done(first.give(of(1)));
            other.join();
            EXPECT_TRUE(had.load());
            expect_free();
        }
    }
}

TEST_F(TwoLevelLock, OtherTargetsAreFree) {
    const Deadline deadline(60);
    expect_done(of(0).lock(2, LockKind::Exclusive));
    expect_done(of(1).lock(3, LockKind::Exclusive));
    expect_done(of(3).lock(1, LockKind::Shared));
    expect_done(of(0).unlock(2, LockKind::Exclusive));
    expect_done(of(1).unlock(3, LockKind::Exclusive));
    expect_done(of(3).unlock(1, LockKind::Shared));
    expect_free();
}

// Random kinds of locks: under an exclusive lock no other rank changes a target's pair of numbers.
TEST_F(TwoLevelLock, ExcludesUnderContention) {
    const Deadline deadline(120);
    struct alignas(64) Pair {
        long a = 0, b = 0;
    };
    std::array<Pair, kRanks> memory;
    std::atomic<long> writes{0};
    const auto work = [&](std::uint32_t me) {
        std::minstd_rand random(me + 1);
        const auto read = [&](std::uint32_t target) { EXPECT_EQ(memory[target].a, memory[target].b); };
        const auto write = [&](std::uint32_t target) {
            ++memory[target].a;
            std::this_thread::yield();
            ++memory[target].b;
            writes.fetch_add(1, std::memory_order_relaxed);
        };
        for (int i = 0; i < times(10000, 500); ++i) {
            const std::uint32_t target = random() % 2;
            switch (random() % 4) {
                case 0:
                    expect_done(of(me).lock(target, LockKind::Shared));
                    read(target);
                    expect_done(of(me).unlock(target, LockKind::Shared));
                    break;
                case 1:
                    expect_done(of(me).lock(target, LockKind::Exclusive));
                    write(target);
                    expect_done(of(me).unlock(target, LockKind::Exclusive));
                    break;
                case 2:
                    expect_done(of(me).lock(0, LockKind::Exclusive));
                    expect_done(of(me).lock(1, LockKind::Exclusive));
                    write(1);
                    expect_done(of(me).unlock(0, LockKind::Exclusive));
                    write(1);
                    expect_done(of(me).unlock(1, LockKind::Exclusive));
                    break;
                default:
                    expect_done(of(me).lock_all());
                    read(0);
                    read(1);
                    expect_done(of(me).unlock_all());
            }
        }
    };
    std::vector<std::jthread> threads;
    for (std::uint32_t rank = 0; rank < kRanks; ++rank)
        threads.emplace_back(work, rank);
    threads.clear();
    EXPECT_EQ(memory[0].a + memory[1].a, writes.load());
    expect_free();
}

// Two threads of a process enter by the same registration, and the last one to leave takes it back.
TEST_F(TwoLevelLock, ThreadsShareTheGlobalWord) {
    const Deadline deadline(60);
    const auto work = [&](std::uint32_t target) {
        for (int i = 0; i < times(5000, 500); ++i) {
            expect_done(of(1).lock(target, LockKind::Exclusive));
            EXPECT_EQ(ranks[1].memory.at(0, sync::Words::Word::Global).load() >> 32, tally_of(1));
            expect_done(of(1).unlock(target, LockKind::Exclusive));
        }
    };
    std::thread other(work, 2);
    work(3);
    other.join();
    expect_free();
}

TEST_F(TwoLevelLock, NamesTheDeadHolderOfALock) {
    const Deadline deadline(60);
    expect_done(of(1).lock(2, LockKind::Exclusive));
    lives.kill(1);
    expect_dead(
        of(3).lock(2, LockKind::Shared),
        "rank 1 died, or its connection was lost, while it held a lock on rank 2; the lock cannot be taken any more");
    expect_dead(
        of(3).lock(2, LockKind::Exclusive),
        "rank 1 died, or its connection was lost, while it held a lock on rank 2; the lock cannot be taken any more");
    expect_dead(
        of(3).lock_all(),
        "rank 1 died, or its connection was lost, with a lock of the window; this lock cannot be taken any more");
    // Locks that the dead process did not hold are unaffected, and the refused requests have left no trace.
    expect_done(of(3).lock(0, LockKind::Exclusive));
    expect_done(of(3).unlock(0, LockKind::Exclusive));
    EXPECT_EQ(rows[2][0].load(), std::uint64_t{tally_of(1)} << 32);
    EXPECT_EQ(rows[0][1].load(), std::uint64_t{tally_of(1)} << 32);
}

TEST_F(TwoLevelLock, NamesTheDeadHolderOfASharedLock) {
    const Deadline deadline(60);
    expect_done(of(1).lock(2, LockKind::Shared));
    expect_done(of(1).lock_all());
    lives.kill(1);
    expect_dead(
        of(3).lock(0, LockKind::Exclusive),
        "rank 1 died, or its connection was lost, with a lock of the window; this lock cannot be taken any more");
    expect_done(of(3).lock_all());
    expect_done(of(3).unlock_all());
    rows[0][1] = 0;
    expect_dead(
        of(3).lock(2, LockKind::Exclusive),
        "rank 1 died, or its connection was lost, while it held a lock on rank 2; the lock cannot be taken any more");
    expect_done(of(3).lock(2, LockKind::Shared));
    expect_done(of(3).unlock(2, LockKind::Shared));
    EXPECT_EQ(rows[2][0].load(), tally_of(1));
    EXPECT_EQ(rows[0][1].load(), 0u);
}

// Live holders come and go beside a dead one. A waiter finds the dead holder when the others have left.
TEST_F(TwoLevelLock, FindsTheDeadAmongTheLiving) {
    const Deadline deadline(60);
    expect_done(of(1).lock(2, LockKind::Shared));
    lives.kill(1);
    std::atomic<bool> over{false};
    std::thread reader([&] {
        while (!over.load()) {
            expect_done(of(0).lock(2, LockKind::Shared));
            std::this_thread::sleep_for(std::chrono::milliseconds(3));
            expect_done(of(0).unlock(2, LockKind::Shared));
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    });
    expect_dead(
        of(3).lock(2, LockKind::Exclusive),
        "rank 1 died, or its connection was lost, while it held a lock on rank 2; the lock cannot be taken any more");
    over = true;
    reader.join();
    EXPECT_EQ(rows[2][0].load(), tally_of(1));
}

// A waiter does not give up because of a death while a live process holds the lock.
TEST_F(TwoLevelLock, WaitsForTheLivingBesideTheDead) {
    const Deadline deadline(60);
    lives.kill(1);
    expect_done(of(0).lock(2, LockKind::Shared));
    std::thread other([&] {
        expect_done(of(3).lock(2, LockKind::Exclusive));
        expect_done(of(3).unlock(2, LockKind::Exclusive));
    });
    lives.await_checks(0);
    expect_done(of(0).unlock(2, LockKind::Shared));
    other.join();
    expect_free();
}

TEST_F(TwoLevelLock, NeedsItsTargetAndTheFirstRank) {
    lives.kill(2);
    expect_dead(of(3).lock(2, LockKind::Shared), "rank 2 died");
    expect_dead(of(3).lock(2, LockKind::Exclusive), "rank 2 died");
    expect_done(of(3).lock_all());
    expect_done(of(3).unlock_all());
    expect_free();
    lives.kill(0);
    expect_dead(of(3).lock_all(), "rank 0 died");
    expect_dead(of(3).lock(1, LockKind::Exclusive), "rank 0 died");
    expect_done(of(3).lock(1, LockKind::Shared));
    expect_done(of(3).unlock(1, LockKind::Shared));
}

TEST(Tally, KnowsTheDead) {
    using sync::may_be_dead;
    const auto all = [](std::initializer_list<std::uint32_t> ranks) {
        std::uint32_t sum = 0;
        for (const std::uint32_t rank : ranks)
            sum += tally_of(rank);
        return sum;
    };
    const std::vector<std::uint32_t> dead{3, 5, 900};
    const auto few = [&](std::uint32_t tally, std::size_t most) {
        return may_be_dead(tally, std::span(dead).first(most));
    };
    EXPECT_FALSE(few(0, 3));
    for (const std::uint32_t rank : {0u, 3u, 4u, 5u, 899u, 900u})
        EXPECT_EQ(few(all({rank}), 3), rank == 3 || rank == 5 || rank == 900) << rank;
    EXPECT_TRUE(few(all({3, 5}), 2));
    EXPECT_FALSE(few(all({3, 6}), 2));
    EXPECT_FALSE(few(all({3, 5}), 1));
    EXPECT_TRUE(few(all({5, 900}), 3));
    EXPECT_FALSE(few(all({6, 900}), 3));
    EXPECT_FALSE(few(all({2, 5}), 3));
    EXPECT_FALSE(few(all({3, 5, 900, 901}), 3));
    // As many as there may be.
    std::uint32_t full = 0;
    for (std::uint32_t rank = 0; rank < sync::kMostTallied; ++rank)
        full += tally_of(rank);
    EXPECT_EQ(sync::tally_count(full), sync::kMostTallied);
    EXPECT_EQ(sync::tally_sum(full), sync::kMostTallied * (sync::kMostTallied + 1) / 2);
}

}  // namespace
}  // namespace osc::test
