// Conflict detection on random histories. An oracle keeps vector clocks of everything that orders the processes
// (fences, posts, locks, messages, which the detector does not see) and compares all pairs of accesses byte by byte.
//
// Sound: what is reported conflicts and is unordered. Complete: everything that conflicts is reported, if no fence is
// between the two, and they belong to one exposure epoch, or overlap in time, or have one origin.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "plugins/verify/access_log.h"
#include "plugins/verify/race_finder.h"

namespace osc::check {
namespace {

constexpr std::uint32_t kProcesses = 4;
constexpr std::uint32_t kOwner = 0;
using Clock = std::vector<std::uint64_t>;
using Pairs = std::set<std::pair<std::uint64_t, std::uint64_t>>;

struct Fact {
    Operation operation;
    std::uint32_t origin = 0;
    Clock issue;                   // the origin's clock when it is issued
    std::uint32_t done_at = 0;     // the process whose event completes it at the target,
    std::uint64_t done_event = 0;  // and that event; 0: pending
    std::int64_t issued = 0;
    std::int64_t ended = kNotYet;
    World world = World::Fence;
    std::uint64_t exposure = 0;
    std::uint64_t fence = 0;
    bool exclusive = false;
};

bool writes(const Operation& operation) {
    return operation.kind != op::OpKind::Get && operation.op != Op::NoOp;
}
bool atomic(const Operation& operation) {
    return operation.kind == op::OpKind::Accumulate || operation.kind == op::OpKind::GetAccumulate;
}

// Whether two unordered accesses conflict, by the words of the standard; elements begin at `bytes[0].lo`.
bool conflict(const Operation& a, const Operation& b, bool one_origin) {
    const Bytes x = a.bytes[0];
    const Bytes y = b.bytes[0];
    if (x.lo >= y.hi || y.lo >= x.hi || (!writes(a) && !writes(b))) return false;
    if (!atomic(a) || !atomic(b)) return true;
    if (a.basic != b.basic) return true;
    const std::int64_t size = a.basic == Basic::I32 ? 4 : 8;
    if ((x.lo - y.lo) % size != 0) return true;
    return !one_origin && a.op != b.op && a.op != Op::NoOp && b.op != Op::NoOp;
}

class Program {
  public:
    Program(unsigned seed, bool few_sites) : random_(seed), few_sites_(few_sites), finder_(kOwner, {}) {
        for (std::uint32_t rank = 0; rank < kProcesses; ++rank) {
            logs_.push_back(std::make_unique<AccessLog>(rank, Promises{}));
            clocks_.emplace_back(kProcesses, 0);
        }
        lock_.assign(kProcesses, 0);
        begins_.assign(kProcesses, 0);
        messages_.resize(kProcesses);
        started_.assign(kProcesses, false);
    }

    void run() {
        for (int segment = 0; segment < 4; ++segment) {
            const auto world = random_() % 3;
            for (int step = 0; step < 60; ++step) {
                const auto rank = static_cast<std::uint32_t>(random_() % kProcesses);
                if (random_() % 4 == 0)
                    talk(rank);
                else if (world == 0)
                    operate(rank, World::Fence, 0, false);
                else if (world == 1)
                    expose(rank);
                else
                    lock(rank);
            }
            close();
            fence();
        }
    }

    Pairs found;              // by the detector
    std::vector<Fact> facts;  // everything that happened
    std::size_t compared = 0;

  private:
    std::uint64_t event(std::uint32_t rank) { return ++clocks_[rank][rank]; }
    void join(std::uint32_t rank, const Clock& other) {
        for (std::size_t i = 0; i < other.size(); ++i)
            clocks_[rank][i] = std::max(clocks_[rank][i], other[i]);
    }

    void talk(std::uint32_t rank) {
        event(rank);
        ++time_;
        if (random_() % 2 == 0) {
            messages_[random_() % kProcesses].push_back(clocks_[rank]);
        } else if (!messages_[rank].empty()) {
            join(rank, messages_[rank].back());
            messages_[rank].pop_back();
        }
    }

    void operate(std::uint32_t rank, World world, std::uint64_t exposure, bool exclusive) {
        Fact fact;
        Operation& operation = fact.operation;
        operation.call = "MPI_Test";
        operation.target = kOwner;
        constexpr op::OpKind kKinds[] = {op::OpKind::Put, op::OpKind::Get, op::OpKind::Accumulate,
                                         op::OpKind::GetAccumulate};
        constexpr Op kOps[] = {Op::Sum, Op::Max, Op::NoOp};
        operation.kind = kKinds[random_() % 4];
        operation.basic = random_() % 4 == 0 ? Basic::I64 : Basic::I32;
        if (atomic(operation)) operation.op = kOps[random_() % (operation.kind == op::OpKind::GetAccumulate ? 3 : 2)];
        const std::int64_t size = operation.basic == Basic::I32 ? 4 : 8;
        const auto lo = static_cast<std::int64_t>(random_() % 60) * 2;
        operation.bytes = {{lo, lo + size * static_cast<std::int64_t>(1 + random_() % 2)}};
        // A site is a line of a program: it always makes the same kind of call.
        operation.site.value = ++sites_;
        if (few_sites_)
            operation.site.value = 1 + rank * 64 + static_cast<unsigned>(operation.kind) * 16 +
                                   static_cast<unsigned>(operation.op) % 4 * 4 +
                                   (operation.basic == Basic::I64 ? 1 : 0);
        event(rank);
        fact.origin = rank;
        fact.issue = clocks_[rank];
        fact.issued = ++time_;
        fact.world = world;
        fact.exposure = exposure;
        fact.fence = fences_;
        fact.exclusive = exclusive;
        std::vector<Conflict> own;
        logs_[rank]->add(operation, fact.issued, own);
        for (const Conflict& one : own)
            note(one);
        facts.push_back(fact);
    }

    void note(const Conflict& one) { found.insert(std::minmax(one.accesses[0].site, one.accesses[1].site)); }

    // Everything pending of an origin ends at an event of process `at`.
    void end(std::uint32_t origin, std::uint32_t at, std::uint64_t at_event, std::int64_t since) {
        for (Fact& fact : facts)
            if (fact.origin == origin && fact.ended == kNotYet) {
                fact.done_at = at;
                fact.done_event = at_event;
                fact.ended = since;
            }
    }

    void lock(std::uint32_t rank) {
        if (lock_[rank] == 0) {
            const bool exclusive = random_() % 2 == 0;
            const bool taken = std::any_of(lock_.begin(), lock_.end(), [](int held) { return held != 0; });
            const bool excluded = std::find(lock_.begin(), lock_.end(), 2) != lock_.end();
            if (exclusive ? taken : excluded) return;
            lock_[rank] = exclusive ? 2 : 1;
            event(rank);
            join(rank, exclusive ? released_ : released_exclusive_);
            ++time_;
            logs_[rank]->lock(kOwner, exclusive);
            return;
        }
        const auto choice = random_() % 8;
        if (choice > 1) return operate(rank, World::Lock, 0, lock_[rank] == 2);
        const std::int64_t since = ++time_;
        end(rank, rank, event(rank), since);
        logs_[rank]->complete(kOwner, since);
        if (choice == 0) unlock(rank);
    }

    void unlock(std::uint32_t rank) {
        logs_[rank]->unlock(kOwner);
        for (std::size_t i = 0; i < kProcesses; ++i) {
            released_[i] = std::max(released_[i], clocks_[rank][i]);
            if (lock_[rank] == 2) released_exclusive_[i] = std::max(released_exclusive_[i], clocks_[rank][i]);
        }
        lock_[rank] = 0;
    }

    // The target posts to a random group and waits when all of it has completed; an origin starts, operates, completes.
    void expose(std::uint32_t rank) {
        if (rank == kOwner) {
            if (group_.empty()) {
                for (std::uint32_t origin = 0; origin < kProcesses; ++origin)
                    if (random_() % 2 == 0) group_.push_back(origin);
                if (group_.empty()) return;
                ++exposures_;
                event(rank);
                posted_ = clocks_[rank];
                finder_.post(group_, ++time_);
                waiting_ = group_;
            } else if (waiting_.empty()) {
                wait();
            }
        }
        if (started_[rank]) {
            if (random_() % 4 != 0) return operate(rank, World::Pscw, exposures_, false);
            complete(rank);
        } else if (std::find(waiting_.begin(), waiting_.end(), rank) != waiting_.end()) {
            event(rank);
            join(rank, posted_);
            ++time_;
            logs_[rank]->start(std::vector<std::uint32_t>{kOwner});
            started_[rank] = true;
        }
    }
    void complete(std::uint32_t rank) {
        event(rank);
        const std::int64_t since = ++time_;
        logs_[rank]->complete(kEveryTarget, since);
        logs_[rank]->end_start();
        for (Fact& fact : facts)  // complete at the target with its MPI_Win_wait
            if (fact.origin == rank && fact.ended == kNotYet) fact.ended = since;
        completed_.push_back(clocks_[rank]);
        started_[rank] = false;
        waiting_.erase(std::find(waiting_.begin(), waiting_.end(), rank));
    }
    void wait() {
        for (const Clock& clock : completed_)
            join(kOwner, clock);
        const std::uint64_t done = event(kOwner);
        ++time_;
        for (Fact& fact : facts)
            if (fact.done_event == 0 && fact.ended != kNotYet) {
                fact.done_at = kOwner;
                fact.done_event = done;
            }
        completed_.clear();
        group_.clear();
    }

    void close() {
        for (std::uint32_t rank = 0; rank < kProcesses; ++rank) {
            if (lock_[rank] != 0) {
                const std::int64_t since = ++time_;
                end(rank, rank, event(rank), since);
                logs_[rank]->complete(kOwner, since);
                unlock(rank);
            }
            if (std::find(waiting_.begin(), waiting_.end(), rank) == waiting_.end()) continue;
            if (!started_[rank]) expose_one(rank);
            complete(rank);
        }
        if (!group_.empty()) wait();
    }
    void expose_one(std::uint32_t rank) {
        event(rank);
        join(rank, posted_);
        logs_[rank]->start(std::vector<std::uint32_t>{kOwner});
        started_[rank] = true;
    }

    void fence() {
        Clock all(kProcesses, 0);
        for (std::uint32_t rank = 0; rank < kProcesses; ++rank) {
            const std::int64_t since = ++time_;
            end(rank, rank, event(rank), since);
            logs_[rank]->fence(since);
            for (std::size_t i = 0; i < kProcesses; ++i)
                all[i] = std::max(all[i], clocks_[rank][i]);
            for (auto& [target, entries] : logs_[rank]->take())
                finder_.add(rank, 1, std::move(entries));
        }
        for (std::uint32_t rank = 0; rank < kProcesses; ++rank)
            join(rank, all);
        ++fences_;
        for (const Conflict& one : finder_.find())
            note(one);
    }

    std::mt19937 random_;
    const bool few_sites_;
    RaceFinder finder_;
    std::vector<std::unique_ptr<AccessLog>> logs_;
    std::vector<Clock> clocks_;
    std::vector<std::vector<Clock>> messages_;
    std::vector<int> lock_;  // 1: shared, 2: exclusive
    Clock released_ = Clock(kProcesses, 0);
    Clock released_exclusive_ = Clock(kProcesses, 0);
    std::vector<std::int64_t> begins_;
    std::vector<bool> started_;
    std::vector<std::uint32_t> group_, waiting_;
    std::vector<Clock> completed_;
    Clock posted_;
    std::uint64_t exposures_ = 0;
    std::uint64_t fences_ = 0;
    std::uint64_t sites_ = 0;
    std::int64_t time_ = 0;
};

bool before(const Fact& a, const Fact& b) {
    return a.done_event != 0 && b.issue[a.done_at] >= a.done_event;
}

// What the detector promises to find, of the pairs that conflict.
bool promised(const Fact& a, const Fact& b) {
    if (a.origin == b.origin) return a.ended > b.issued && b.ended > a.issued;
    if (a.fence != b.fence) return false;
    if (a.world == World::Fence) return true;
    if (a.world == World::Pscw) return a.exposure == b.exposure;
    return !a.exclusive && !b.exclusive && a.issued <= b.ended && b.issued <= a.ended;
}

void check(unsigned seed, bool few_sites, std::size_t& conflicts, std::size_t& ordered) {
    Program program(seed, few_sites);
    program.run();
    Pairs unordered;
    Pairs must;
    for (std::size_t i = 0; i < program.facts.size(); ++i)
        for (std::size_t j = 0; j < i; ++j) {
            const Fact& a = program.facts[j];
            const Fact& b = program.facts[i];
            if (!conflict(a.operation, b.operation, a.origin == b.origin)) continue;
            const auto sites = std::minmax(a.operation.site.value, b.operation.site.value);
            if (before(a, b) || before(b, a))
                ++ordered;
            else
                unordered.insert(sites);
            if (promised(a, b)) must.insert(sites);
        }
    conflicts += must.size();
    for (const auto& pair : program.found)
        ASSERT_TRUE(unordered.count(pair) > 0) << "seed " << seed << ": " << pair.first << ", " << pair.second;
    ASSERT_EQ(program.found, must) << "seed " << seed;
}

TEST(RacesRandom, SoundAndComplete) {
    for (const bool few_sites : {false, true}) {
        std::size_t conflicts = 0;
        std::size_t ordered = 0;
        for (unsigned seed = 0; seed < 300; ++seed) {
            check(seed, few_sites, conflicts, ordered);
            if (HasFatalFailure()) return;
        }
        EXPECT_GT(conflicts, 1000u);
        EXPECT_GT(ordered, 1000u);
    }
}

}  // namespace
}  // namespace osc::check
