// Accumulates by the provider's atomics over the fake fabric: results and order against a sequential model, atomicity,
// and the ends of operations that the provider fails.
// Level: gate
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "net/origin/provider_atomics.h"
#include "net_processes.h"

namespace osc::test {
namespace {

JobSetup setup_of(std::uint64_t seed, Progress progress) {
    JobSetup setup = seeded_setup(seed, progress);
    setup.bytes = 8192;
    setup.behaviour.queue = seed % 5 == 0 ? 4 : 64;
    setup.behaviour.full = 100;
    setup.behaviour.delay = seed % 3 == 1 ? 12 : 4;
    setup.behaviour.longest_row = seed % 2 == 0 ? 24 : 256;
    return setup;
}

/// Calls f(transport) as a window does an accumulate, on any process, also on the origin itself.
template <class F>
Fault accumulate(Process& process, std::uint32_t target, F&& f) {
    return process.operate(target, [&](net::Stream& stream) {
        const net::Description* const there = stream.queries.exposed();
        ASSERT_NE(there, nullptr);
        net::ProviderAtomics rows(stream, process.network.endpoint(), there->base, there->key);
        f(stream, rows);
    });
}

Fault add(Process& process, std::uint32_t target, std::int64_t disp, std::int64_t value, std::int64_t* before) {
    return accumulate(process, target, [&](net::Stream&, net::ProviderAtomics& rows) {
        rows.update(update_of(Op::Sum, Basic::I64), disp, &value, before, 1);
    });
}

/// A random program of each process on a slice of each window, which no other process uses.
class Slices {
  public:
    static constexpr std::size_t kPart = 512, kSlice = 4 * kPart, kPool = std::size_t{1} << 18;

    Slices(Processes& all, std::uint64_t seed)
        : all_(all), random_(seed), model_(all.size() * all.size(), std::vector<std::byte>(kSlice)), pool_(kPool) {}

    /// No call waits for another one, so operations on the same elements are in flight together.
    void step() {
        all_.went_on();
        const auto me = below(all_.size());
        const auto target = below(all_.size());
        constexpr std::pair<Basic, Op> kKinds[] = {
            {Basic::I64, Op::Sum}, {Basic::I64, Op::Replace}, {Basic::U32, Op::Bxor},       {Basic::F64, Op::Sum},
            {Basic::I8, Op::Max},  {Basic::I32, Op::NoOp},    {Basic::LongDouble, Op::Sum}, {Basic::U16, Op::Lor},
            {Basic::F32, Op::Min}, {Basic::U64, Op::None},    {Basic::LongInt, Op::Replace}};
        const auto [type, op] = kKinds[below(std::size(kKinds))];
        const std::size_t width = op::element_size(type);
        const bool swaps = op == Op::None;
        const std::size_t count = swaps ? 1 : 1 + below(kPart / width / 2);
        const bool odd = width > 1 && below(8) == 0;  // not aligned: by message
        const std::size_t at =
            part_of(type) * kPart + below(kPart / width - count) * width + (odd ? 1 + below(width - 1) : 0);
        std::byte* const operands = claim(count * width);
        for (std::size_t i = 0; i < count * width; ++i)
            operands[i] = static_cast<std::byte>(random_());
        if (part_of(type) > 0) plain(operands, type, count);
        std::vector<std::byte>& slice = model_[me * all_.size() + target];
        const std::vector<std::byte> before(slice.begin() + static_cast<std::ptrdiff_t>(at),
                                            slice.begin() + static_cast<std::ptrdiff_t>(at + count * width));
        const bool fetches = swaps || op == Op::NoOp || below(2) == 0;
        std::byte* const result = fetches ? claim(count * width) : nullptr;
        const auto disp = static_cast<std::int64_t>(me * kSlice + at);
        Update how = update_of(op, type);
        const bool provider = fake_has(type);
        if (swaps) {
            std::byte* const compare = claim(width);
            if (below(2) == 0) std::memcpy(compare, before.data(), width);
            how.compare = compare;
        }
        ASSERT_EQ(accumulate(all_[me], target,
                             [&](net::Stream& stream, net::ProviderAtomics& rows) {
                                 if (!provider) stream.accumulate_by_message();
                                 Transport& by = provider ? static_cast<Transport&>(rows) : stream;
                                 by.update(how, disp, op == Op::NoOp ? nullptr : operands, result, count);
                             }),
                  Fault::None);
        if (swaps ? std::memcmp(before.data(), how.compare, width) == 0 : op != Op::NoOp)
            (swaps ? how.copy : how.apply)(slice.data() + at, operands, count);
        if (fetches) results_.push_back({result, before, how});
    }

    void verify() {
        for (std::uint32_t me = 0; me < all_.size(); ++me) {
            for (std::uint32_t target = 0; target < all_.size(); ++target) {
                all_.went_on();
                ASSERT_EQ(all_[me].far->complete_ops(target), Fault::None);
            }
        }
        for (const Result& one : results_) {
            std::vector<std::byte> seen = one.before;
            one.how.copy(seen.data(), one.at, seen.size() / one.how.width);
            ASSERT_EQ(seen, one.before) << op::name(one.how.basic) << ' ' << op::name(one.how.op);
        }
        results_.clear();
        used_ = 0;
        for (std::uint32_t me = 0; me < all_.size(); ++me)
            for (std::uint32_t target = 0; target < all_.size(); ++target)
                ASSERT_EQ(
                    std::memcmp(all_[target].bytes() + me * kSlice, model_[me * all_.size() + target].data(), kSlice),
                    0);
    }

  private:
    struct Result {
        const std::byte* at;
        std::vector<std::byte> before;
        Update how;
    };
    // Floating-point elements lie apart: results from arbitrary bits are not comparable bit by bit.
    static std::size_t part_of(Basic type) {
        return type == Basic::F64 ? 1 : type == Basic::F32 ? 2 : type == Basic::LongDouble ? 3 : 0;
    }
    std::uint32_t below(std::size_t n) { return static_cast<std::uint32_t>(random_() % n); }
    bool fake_has(Basic type) const { return net::AtomicsTable(all_[0].network.endpoint()).has(type); }
    std::byte* claim(std::size_t bytes) {
        const std::size_t at = used_;
        used_ += (bytes + 15) / 16 * 16;
        EXPECT_LE(used_, kPool);
        return pool_.data() + at;
    }
    void plain(std::byte* to, Basic type, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            const double value = static_cast<double>(below(16)) / 4;
            const auto single = static_cast<float>(value);
            const auto longest = static_cast<long double>(value);
            if (type == Basic::F64)
                std::memcpy(to + i * 8, &value, 8);
            else if (type == Basic::F32)
                std::memcpy(to + i * 4, &single, 4);
            else
                std::memcpy(to + i * sizeof longest, &longest, sizeof longest);
        }
    }

    Processes& all_;
    std::mt19937_64 random_;
    std::vector<std::vector<std::byte>> model_;  // by origin and target
    std::vector<std::byte> pool_;
    std::size_t used_ = 0;
    std::vector<Result> results_;
};

TEST(FabricRows, OrderAndResultsAgreeWithTheModel) {
    const Deadline deadline(280);
    for (std::uint64_t seed = 1; seed <= static_cast<std::uint64_t>(times(12, 3)); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Processes all(setup_of(seed, Progress::Callers));
        Slices slices(all, seed);
        for (int i = 0; i < 400; ++i) {
            slices.step();
            if (i % 40 == 39) slices.verify();
            if (HasFatalFailure()) return;
        }
        EXPECT_GT(all.fabric().totals().atomics, 100u);
        EXPECT_GT(all.fabric().totals().messages, 50u);
    }
}

// Three processes, the target among them, add to one element.
TEST(FabricRows, NoAdditionIsLost) {
    const Deadline deadline(280);
    const int each = times(200, 50);
    const auto sum = [each](const JobSetup& setup) {
        Processes all(setup);
        in_threads(3, [&](std::uint32_t me) {
            std::int64_t before = 0;
            for (int i = 0; i < each; ++i) {
                EXPECT_EQ(add(all[me], 0, 64, 1, i % 2 == 0 ? &before : nullptr), Fault::None);
                if (i % 8 == 7) {
                    EXPECT_EQ(all[me].far->complete_ops(0), Fault::None);
                }
            }
            EXPECT_EQ(all[me].far->complete_ops(0), Fault::None);
        });
        std::int64_t total = 0;
        EXPECT_EQ(add(all[1], 0, 64, 0, &total), Fault::None);
        EXPECT_EQ(all[1].far->complete_ops(0), Fault::None);
        return static_cast<std::uint64_t>(total);
    };
    expect_split_atomics_to_lose(setup_of(1, Progress::Thread), static_cast<std::uint64_t>(3 * each), sum);
}

// Each operation ends, and the flush says that one has failed, whatever the provider does with the dead.
TEST(FabricRows, ADeadTargetIsAFault) {
    const Deadline deadline(280);
    // The provider may still write to the buffers.
    struct Member {
        explicit Member(const JobSetup& setup) : all(setup) {}
        Processes all;
        std::int64_t before[40] = {};
    };
    at_once(with_dead_peers<Member>(setup_of(2, Progress::Thread)), [](Member& one) {
        Processes& all = one.all;
        EXPECT_EQ(add(all[0], 1, 0, 1, nullptr), Fault::None);
        EXPECT_EQ(all[0].far->complete_ops(1), Fault::None);
        all.fabric().kill(1);
        Fault fault = Fault::None;
        for (int i = 0; i < 40 && fault == Fault::None; ++i)
            fault = add(all[0], 1, 8 * i, 1, &one.before[i]);
        if (fault == Fault::None) fault = all[0].far->complete_ops(1);
        EXPECT_EQ(fault, Fault::Dead);
        EXPECT_EQ(add(all[0], 2, 0, 1, nullptr), Fault::None);
        EXPECT_EQ(all[0].far->complete_ops(2), Fault::None);
    });
}

// A provider that ends operations with errors: the flush reports a fault, and all that follows ends too.
TEST(FabricRows, AnErrorOfTheProviderIsAFault) {
    const Deadline deadline(280);
    JobSetup setup = setup_of(4, Progress::Thread);
    Processes all(setup);
    EXPECT_EQ(add(all[0], 1, 0, 1, nullptr), Fault::None);
    EXPECT_EQ(all[0].far->complete_ops(1), Fault::None);
    all[1].network.endpoint().revoke(all[1].exposed);
    static std::int64_t before[100];
    for (int i = 0; i < 100; ++i)
        EXPECT_EQ(add(all[0], 1, 8 * (i % 3), 1, &before[i]), Fault::None);
    EXPECT_EQ(all[0].far->complete_ops(1), Fault::Other);
    EXPECT_EQ(all[0].far->complete_ops(1), Fault::None);
    EXPECT_FALSE(all[0].network.connections.connect(all[0].job.first_address(1))->ended());
}

TEST(FabricRows, TheTableSaysWhatTheProviderHas) {
    const auto table = [](const fake::Behaviour& behaviour) {
        JobSetup setup;
        setup.behaviour = behaviour;
        Processes all(setup);
        return net::AtomicsTable(all[0].network.endpoint());
    };
    fake::Behaviour behaviour;
    const net::AtomicsTable whole = table(behaviour);
    EXPECT_TRUE(whole.has(Basic::F64));
    EXPECT_TRUE(whole.has(Basic::I64, Op::Prod));
    EXPECT_FALSE(whole.has(Basic::F64, Op::Band));
    EXPECT_FALSE(whole.has(Basic::LongDouble));
    EXPECT_FALSE(whole.has(Basic::None));
    behaviour.lacking = Op::Prod;
    const net::AtomicsTable no_product = table(behaviour);
    EXPECT_TRUE(no_product.has(Basic::I64));
    EXPECT_FALSE(no_product.has(Basic::I64, Op::Prod));
    EXPECT_NE(no_product.sum(), whole.sum());
    using net::Mechanism;
    EXPECT_EQ(no_product.mechanism(Basic::I64, Op::Sum, false), Mechanism::Provider);
    EXPECT_EQ(no_product.mechanism(Basic::I64, Op::None, false), Mechanism::Provider);
    EXPECT_EQ(no_product.mechanism(Basic::I64, Op::Prod, false), Mechanism::Refused);
    EXPECT_EQ(no_product.mechanism(Basic::I64, Op::Prod, true), Mechanism::Message);
    EXPECT_EQ(no_product.mechanism(Basic::LongDouble, Op::Prod, false), Mechanism::Message);
    behaviour.lacking = Op::Replace;
    EXPECT_TRUE(table(behaviour).is_empty());
    behaviour.lacking = Op::None;
    behaviour.atomics = false;
    EXPECT_TRUE(table(behaviour).is_empty());
}

}  // namespace
}  // namespace osc::test
