// Remote atomics on lock words over the fake fabric: LockWords of several processes, and the two-level locks on them.
// Level: gate
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "net/origin/lock_words.h"
#include "net_processes.h"

namespace osc::test {
namespace {

using sync::LockKind;
using sync::TwoLevel;
using Word = sync::Words::Word;

/// Processes whose windows have lock words.
class Words {
  public:
    explicit Words(const JobSetup& setup) : all(setup) {
        for (std::uint32_t rank = 0; rank < all.size(); ++rank) {
            Process& process = all[rank];
            words.push_back(std::make_unique<net::LockWords>(process.network, *process.far, rank));
            EXPECT_STREQ(words.back()->flaw(), "");
            all.serve_again(process, words.back()->exposed());
            locks.push_back(std::make_unique<TwoLevel>(*words.back(), rank, all.size(), process.ranks.lives()));
        }
    }
    ~Words() { words.clear(); }
    Words(const Words&) = delete;
    Words& operator=(const Words&) = delete;

    std::uint64_t value(std::uint32_t rank, Word word) {
        std::uint64_t before = 0;
        EXPECT_EQ(words[0]->add(rank, word, 0, before), Fault::None);
        return before;
    }
    void expect_free() {
        for (std::uint32_t rank = 0; rank < all.size(); ++rank)
            for (const Word word : {Word::Local, Word::Global})
                EXPECT_EQ(value(rank, word), 0u);
    }

    Deadline deadline{120};
    Processes all;
    std::vector<std::unique_ptr<net::LockWords>> words;
    std::vector<std::unique_ptr<TwoLevel>> locks;
};

TEST(FabricAtomics, WordsAgreeWithTheModel) {
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Words of(seeded_setup(seed, Progress::Callers));
        std::mt19937_64 random(seed);
        std::uint64_t model[3][2] = {};
        for (int i = 0; i < times(500, 100); ++i) {
            of.all.went_on();
            const std::size_t me = random() % 3;
            const auto rank = static_cast<std::uint32_t>(random() % 3);
            const auto word = static_cast<Word>(random() % 2);
            std::uint64_t& now = model[rank][static_cast<std::size_t>(word)];
            const std::uint64_t value = random();
            std::uint64_t before = ~now;
            const std::uint64_t expected = random() % 2 == 0 ? now : random();
            const bool add = random() % 2 == 0;
            const Fault fault = add ? of.words[me]->add(rank, word, value, before)
                                    : of.words[me]->swap(rank, word, expected, value, before);
            ASSERT_EQ(fault, Fault::None);
            ASSERT_EQ(before, now);
            if (add)
                now += value;
            else if (expected == now)
                now = value;
        }
    }
}

// The exclusive lock of one window protects a counter that only its holder changes; shared holders see it unchanged.
/// Programs in threads of their own; how often one saw another's change under its lock.
int broken_exclusions(Words& of, std::uint64_t seed, int turns) {
    std::atomic<int> broken{0};
    std::vector<std::atomic<std::uint64_t>> counters(of.all.size());
    in_threads(of.all.size(), [&](std::uint32_t me) {
        std::mt19937_64 random(seed * 100 + me);
        TwoLevel& locks = *of.locks[me];
        for (int i = 0; i < turns; ++i) {
            const auto target = static_cast<std::uint32_t>(random() % of.all.size());
            std::atomic<std::uint64_t>& counter = counters[target];
            const auto kind = random() % 3;
            const bool exclusive = kind == 0;
            const LockKind one = exclusive ? LockKind::Exclusive : LockKind::Shared;
            EXPECT_EQ(kind == 2 ? locks.lock_all() : locks.lock(target, one), Fault::None);
            const std::uint64_t before = counter.load();
            if (exclusive) counter.store(before + 1);
            std::this_thread::yield();
            if (counter.load() != before + (exclusive ? 1 : 0)) broken.fetch_add(1);
            EXPECT_EQ(kind == 2 ? locks.unlock_all() : locks.unlock(target, one), Fault::None);
        }
    });
    return broken.load();
}

TEST(FabricAtomics, TwoLevelLocksExclude) {
    for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(times(4, 2)); ++seed) {
        Words of(seeded_setup(seed, Progress::Thread));
        EXPECT_EQ(broken_exclusions(of, seed, times(100, 25)), 0) << "seed " << seed;
        of.expect_free();
    }
}

TEST(FabricAtomics, ASplitAtomicIsNoticed) {
    const int each = times(200, 50);
    const auto sum = [each](const JobSetup& setup) {
        Words of(setup);
        in_threads(3, [&](std::uint32_t me) {
            std::uint64_t before = 0;
            for (int i = 0; i < each; ++i)
                EXPECT_EQ(of.words[me]->add(0, Word::Local, 1, before), Fault::None);
        });
        return of.value(0, Word::Local);
    };
    expect_split_atomics_to_lose(seeded_setup(1, Progress::Thread), static_cast<std::uint64_t>(3 * each), sum);
}

// An atomic to the dead is given up, whatever the provider does with it.
TEST(FabricAtomics, ADeadProcessIsAFault) {
    at_once(with_dead_peers<Words>(seeded_setup(2, Progress::Thread)), [](Words& of) {
        std::uint64_t before = 0;
        EXPECT_EQ(of.words[0]->add(1, Word::Local, 1, before), Fault::None);
        of.all.fabric().kill(1);
        EXPECT_EQ(of.words[0]->add(1, Word::Local, 1, before), Fault::Dead);
        EXPECT_EQ(of.words[0]->add(2, Word::Local, 1, before), Fault::None);
    });
}

// A process that has given up its window's words refuses the atomic. It lives: its other windows go on.
TEST(FabricAtomics, ARefusalIsNoDeath) {
    Words of(seeded_setup(2, Progress::Thread));
    std::uint64_t before = 0;
    EXPECT_EQ(of.words[0]->add(1, Word::Local, 1, before), Fault::None);
    of.words[1].reset();
    for (int again = 0; again < 2; ++again)
        EXPECT_EQ(of.words[0]->add(1, Word::Local, 1, before), Fault::Other);
    EXPECT_FALSE(of.all[0].network.connections.connect(of.all[0].job.first_address(1))->ended());
}

TEST(FabricAtomics, AProviderWithoutAtomicsIsSaidToBe) {
    JobSetup setup = seeded_setup(1, Progress::Callers);
    setup.behaviour.atomics = false;
    Processes all(setup);
    const net::LockWords words(all[0].network, *all[0].far, 0);
    EXPECT_STREQ(words.flaw(), "has no atomics");
}

}  // namespace
}  // namespace osc::test
