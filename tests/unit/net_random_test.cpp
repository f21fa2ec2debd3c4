// Random programs of several processes over the fake fabric, against a sequential model, for random behaviours of the
// fabric: the origin's streams, the messages and the targets together. OSC_TEST_SEED=n repeats the run of a
// seed, which a failure prints. OSC_TEST_FULL=1 does a million operations.
// Level: gate
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <ranges>

#include "net_program.h"

namespace osc::test {
namespace {

using fake::Behaviour;
using fake::Flaw;

constexpr std::uint32_t kProcesses = 3;
constexpr int kOperations = 2000;  // of a run

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
    const char* const given = std::getenv(variable);
    return given != nullptr && given[0] != '\0' ? std::strtoull(given, nullptr, 0) : otherwise;
}

/// What a seed makes of the fabric and of the window.
JobSetup random_setup(std::uint64_t seed, Progress progress) {
    std::mt19937_64 random(seed);
    const auto one_of = [&](std::initializer_list<std::size_t> values) {
        return values.begin()[random() % values.size()];
    };
    const auto flip = [&] { return random() % 2 == 0; };
    JobSetup setup;
    setup.processes = kProcesses;
    setup.bytes = Common(kProcesses).window();
    setup.progress = progress;
    constexpr net::Protocol kProtocols[] = {net::Protocol::Auto, net::Protocol::Auto, net::Protocol::Messages,
                                            net::Protocol::Buffered, net::Protocol::Direct};
    setup.protocol = kProtocols[random() % std::size(kProtocols)];
    Behaviour& fabric = setup.behaviour;
    fabric.seed = seed;
    fabric.registers = random() % 8 != 0;
    fabric.virtual_addresses = flip();
    fabric.provider_keys = flip();
    fabric.transmit_complete = flip();
    fabric.automatic_progress = flip();
    fabric.posts_move_data = flip();
    fabric.delay = static_cast<unsigned>(one_of({0, 2, 6, 30}));
    fabric.splits = static_cast<unsigned>(one_of({0, 2, 10}));
    fabric.burst = static_cast<unsigned>(one_of({1, 4, 16}));
    fabric.queue = one_of({2, 8, 64, 1024});
    fabric.full = static_cast<unsigned>(one_of({0, 20, 300}));
    fabric.buffer = one_of({fabric::kSmallestBuffer, fabric::kLargestBuffered, fabric::kLargestMessage});
    fabric.largest_copied = one_of({0, 64, 192, 4096});
    fabric.largest_transfer = one_of({512, 4096, std::size_t{1} << 30});
    fabric.direct_from = one_of({64, 1024, 4096, 32768});
    return setup;
}

/// One run; the first thing that is wrong, or "".
class RandomRun {
  public:
    RandomRun(const JobSetup& setup, std::uint64_t seed)
        : common_(kProcesses), processes_(setup), random_(seed), waiters_(kProcesses) {
        for (std::uint32_t rank = 0; rank < kProcesses; ++rank)
            programs_.push_back(
                std::make_unique<Program>(processes_[rank], common_, seed, [this, rank](std::uint32_t target) {
                    if (!threaded_) processes_.went_on();
                    release_before(rank, target);
                }));
    }

    // Memory of the programs may be in use.
    ~RandomRun() { processes_.quiesce(); }

    /// All programs in one thread, which always takes the steps in the same order.
    std::string alone(int operations) {
        for (int i = 0; i < operations && wrong().empty(); ++i) {
            const auto me = static_cast<std::uint32_t>(random_() % kProcesses);
            const auto target = other(me);
            processes_.went_on();
            if (random_() % 16 == 0)
                lock_or_unlock(me, target);
            else
                programs_[me]->operate(target);
        }
        for (std::uint32_t me = 0; me < kProcesses; ++me)
            for (std::uint32_t target = 0; target < kProcesses; ++target)
                end(me, target);
        return outcome();
    }

    /// Each program in a thread of its own.
    std::string threaded(int operations) {
        threaded_ = true;
        in_threads(kProcesses, [&](std::uint32_t me) {
            std::mt19937_64 random(me + 1);
            Program& program = *programs_[me];
            for (int i = 0; i < operations / static_cast<int>(kProcesses) && program.wrong().empty(); ++i) {
                const auto target = static_cast<std::uint32_t>((me + 1 + random() % (kProcesses - 1)) % kProcesses);
                // One lock at a time: a cycle of waits would be the program's own.
                const bool one = std::ranges::none_of(std::views::iota(0u, kProcesses), [&](std::uint32_t rank) {
                    return program.locks(rank) != Program::Locks::None;
                });
                if (random() % 16 != 0)
                    program.operate(target);
                else if (program.locks(target) != Program::Locks::None)
                    program.unlock(target);
                else if (one)
                    program.lock(target, random() % 2 == 0 ? Program::Locks::Exclusive : Program::Locks::Shared);
            }
            for (std::uint32_t target = 0; target < kProcesses; ++target)
                if (target != me && program.locks(target) != Program::Locks::None) program.unlock(target);
            program.settle_all();
        });
        return outcome();
    }

    const fake::Totals totals() { return processes_.fabric().totals(); }

  private:
    std::uint32_t other(std::uint32_t me) {
        return static_cast<std::uint32_t>((me + 1 + random_() % (kProcesses - 1)) % kProcesses);
    }
    std::string wrong() const {
        for (const auto& program : programs_)
            if (!program->wrong().empty()) return program->wrong();
        return {};
    }

    // In one thread a program may wait for a lock only when those before it have given it back.
    void release_before(std::uint32_t me, std::uint32_t target) {
        if (threaded_) return;
        std::vector<std::uint32_t>& queue = waiters_[target];
        if (queue.size() < 2 || queue.back() != me) return;
        while (queue.front() != me)
            end(queue.front(), target);
    }
    void end(std::uint32_t me, std::uint32_t target) {
        if (me == target) return;
        if (programs_[me]->locks(target) == Program::Locks::None) return programs_[me]->complete_ops(target);
        release_before(me, target);
        programs_[me]->unlock(target);
        std::erase(waiters_[target], me);
    }
    // The last in the queue of a target may wait for it; all before it have the lock.
    void lock_or_unlock(std::uint32_t me, std::uint32_t target) {
        std::vector<std::uint32_t>& queue = waiters_[target];
        if (programs_[me]->locks(target) != Program::Locks::None) return end(me, target);
        const auto kind = random_() % 2 == 0 ? Program::Locks::Exclusive : Program::Locks::Shared;
        if (queue.size() >= 2) return programs_[me]->operate(target);
        for (const std::uint32_t holder : queue)
            programs_[holder]->confirm(target);
        programs_[me]->lock(target, kind);
        queue.push_back(me);
        if (queue.size() > 1 && random_() % 2 == 0) programs_[me]->send_off(target);
    }

    std::string outcome() {
        if (!wrong().empty()) return wrong();
        for (std::uint32_t target = 0; target < kProcesses; ++target) {
            const std::byte* const memory = processes_[target].bytes();
            for (std::uint32_t origin = 0; origin < kProcesses; ++origin)
                if (origin != target && std::memcmp(memory + common_.slice(origin),
                                                    programs_[origin]->slice(target).data(), Common::kSlice) != 0)
                    return "wrong memory of rank " + std::to_string(target) + " from " + std::to_string(origin);
            if (std::memcmp(memory + common_.common(), common_.bytes[target].data(), Common::kBytes) != 0)
                return "wrong common bytes of rank " + std::to_string(target);
            for (std::size_t counter = 0; counter < Common::kCounters; ++counter)
                if (const std::string what = counted(target, counter); !what.empty()) return what;
        }
        std::string first;
        return processes_.fabric().violations(first) != 0 ? first : std::string();
    }
    // Every fetch-and-add has seen another value, and all values below the sum were seen.
    std::string counted(std::uint32_t target, std::size_t counter) {
        std::uint64_t sum = 0;
        std::set<std::uint64_t> seen;
        for (const auto& program : programs_) {
            sum += program->fetched(target, counter);
            for (const std::uint64_t value : program->seen(target)[counter])
                if (!seen.insert(value).second) return "a counter gave one value twice";
        }
        std::uint64_t now = 0;
        std::memcpy(&now, processes_[target].bytes() + common_.counters() + counter * sizeof now, sizeof now);
        const bool whole = now == sum && seen.size() == sum && (sum == 0 || *seen.rbegin() == sum - 1);
        return whole ? std::string() : "a counter of rank " + std::to_string(target) + " is wrong";
    }

    Common common_;
    Processes processes_;
    std::mt19937_64 random_;
    bool threaded_ = false;
    std::vector<std::vector<std::uint32_t>> waiters_;  // by target: holders of its lock, and perhaps one that waits
    std::vector<std::unique_ptr<Program>> programs_;
};

std::string run(const JobSetup& setup) {
    RandomRun one(setup, setup.behaviour.seed);
    return setup.progress == Progress::Callers ? one.alone(kOperations)
                                               : one.threaded(times(kOperations, kOperations / 4));
}

/// Runs of the seeds from 1 on, or of the one seed that OSC_TEST_SEED gives.
void expect_agreement(std::uint64_t runs, Progress progress) {
    const std::uint64_t given = number_of("OSC_TEST_SEED", 0);
    const std::uint64_t last = given != 0 ? given : runs;
    for (std::uint64_t seed = given != 0 ? given : 1; seed <= last; ++seed)
        ASSERT_EQ(run(random_setup(seed, progress)), "") << "OSC_TEST_SEED=" << seed;
}

TEST(FabricRandom, OneThreadAgreesWithTheModel) {
    const Deadline deadline(280);
    const bool full = number_of("OSC_TEST_FULL", 0) != 0;
    expect_agreement(kSanitized ? 3 : full ? 1000000 / kOperations : 20, Progress::Callers);
}

TEST(FabricRandom, ThreadsAgreeWithTheModel) {
    const Deadline deadline(280);
    expect_agreement(times(4, 1), Progress::Thread);
}

// The same seed gives the same run, event by event.
TEST(FabricRandom, RunsRepeat) {
    const auto totals = [](std::uint64_t seed) {
        RandomRun one(random_setup(seed, Progress::Callers), seed);
        EXPECT_EQ(one.alone(kOperations / 4), "");
        return one.totals();
    };
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
        const fake::Totals first = totals(seed);
        EXPECT_GT(first.messages, 50u);
        EXPECT_EQ(first, totals(seed)) << "OSC_TEST_SEED=" << seed;
    }
}

/// Whether a run over a flawed fabric, in a process of its own, finds something wrong or ends no more.
bool notices(const JobSetup& setup) {
    const pid_t child = ::fork();
    if (child == 0) {
        const Deadline deadline(60);
        ::close(STDERR_FILENO);
        ::_exit(run(setup).empty() ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    return WIFEXITED(status) && WEXITSTATUS(status) != 0;
}

// Each flaw of the fabric must make the runs above fail.
class FabricFlaws : public ::testing::TestWithParam<Flaw> {};

TEST_P(FabricFlaws, AreNoticed) {
    constexpr std::uint64_t kSeeds = 30;
    std::uint64_t noticed = 0;
    for (std::uint64_t seed = 1; seed <= kSeeds && noticed == 0; ++seed) {
        JobSetup setup = random_setup(seed, Progress::Callers);
        const bool direct = GetParam() == Flaw::EndsWritesEarly || GetParam() == Flaw::EndsReadsEarly;
        setup.protocol = direct ? net::Protocol::Direct : net::Protocol::Messages;
        setup.behaviour.registers = true;
        setup.behaviour.transmit_complete = true;
        setup.behaviour.largest_copied = 192;
        setup.behaviour.queue = 64;
        setup.behaviour.flaw = GetParam();
        setup.behaviour.flawed = 20;
        noticed += notices(setup) ? 1 : 0;
    }
    EXPECT_GT(noticed, 0u);
}

INSTANTIATE_TEST_SUITE_P(Each, FabricFlaws,
                         ::testing::Values(Flaw::SwapsMessages, Flaw::LosesMessages, Flaw::RepeatsMessages,
                                           Flaw::DamagesMessages, Flaw::EndsWritesEarly, Flaw::EndsReadsEarly,
                                           Flaw::EndsSendsEarly),
                         [](const auto& flaw) { return fake::name_of(flaw.param); });

}  // namespace
}  // namespace osc::test
