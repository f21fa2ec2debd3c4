// Reduction kernels: every operation on every type, in every instruction set that this processor has, against a scalar
// reference; at odd addresses; with padding and neighbours untouched.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "op/kernels.h"
#include "op_kernels_reference.h"

namespace osc::op::reference {
namespace {

constexpr std::size_t guard = 80;

/// Runs the kernel between guard bytes, at odd distances from aligned addresses, and compares every byte.
void check(Kernel run, Op op, Basic basic, std::size_t count, std::size_t target_shift, std::size_t origin_shift) {
    const std::size_t size = expected(basic)->size;
    const Bytes target = random_array(basic, count);
    const Bytes origin = random_array(basic, count);
    Bytes window(guard + target_shift + target.size() + guard, 0xA5);
    Bytes source(origin_shift + origin.size());
    unsigned char* const at = window.data() + guard + target_shift;
    std::copy(target.begin(), target.end(), at);
    std::copy(origin.begin(), origin.end(), source.data() + origin_shift);

    Bytes wanted = window;
    for (std::size_t i = 0; i < count; ++i) {
        reference_element(op, basic, wanted.data() + guard + target_shift + i * size, origin.data() + i * size);
    }
    run_aligned(run, at, source.data() + origin_shift, count, size);
    for (std::size_t i = 0; i < window.size(); ++i) {
        const std::size_t inside = i - guard - target_shift;  // wraps to a huge number in front of the array
        if (window[i] != wanted[i] && !(inside < target.size() && is_unused_byte(basic, inside % size))) {
            FAIL() << "byte " << static_cast<std::ptrdiff_t>(inside) << " of " << count << " elements of " << size;
        }
    }
    EXPECT_TRUE(std::equal(origin.begin(), origin.end(), source.data() + origin_shift)) << "origin was written";
}

template <class F>
void for_each_pair(F body) {
    for (int op = 0; op <= static_cast<int>(Op::Count); ++op) {
        for (int basic = 0; basic <= static_cast<int>(Basic::Count); ++basic) {
            body(static_cast<Op>(op), static_cast<Basic>(basic));
        }
    }
}

class OpKernelsIn : public testing::TestWithParam<Isa> {};

TEST_P(OpKernelsIn, MatchReference) {
    if (kernel(GetParam(), Op::Sum, Basic::I32) == nullptr) {
        GTEST_SKIP() << "not on this processor";
    }
    for_each_pair([&](Op op, Basic basic) {
        const Kernel run = kernel(GetParam(), op, basic);
        ASSERT_EQ(run != nullptr, expect_admitted(op, basic)) << name(op) << " on " << name(basic);
        if (run == nullptr) {
            return;
        }
        SCOPED_TRACE(std::string(name(op)) + " on " + name(basic));
        for (const std::size_t count : {0, 1, 3, 7, 64, 1000}) {
            check(run, op, basic, count, 0, 0);
            check(run, op, basic, count, 1, 7);
            check(run, op, basic, count, 24, 3);
        }
        check(run, op, basic, 5003, 24, 3);  // long enough for run_aligned to align the target
    });
}

TEST_P(OpKernelsIn, TakeTheSameArrayTwice) {
    if (kernel(GetParam(), Op::Sum, Basic::I32) == nullptr) {
        GTEST_SKIP() << "not on this processor";
    }
    for_each_pair([&](Op op, Basic basic) {
        if (!admits(op, basic)) {
            return;
        }
        Bytes array = random_array(basic, 1000);
        Bytes wanted = array;
        const Bytes origin = array;
        const std::size_t size = element_size(basic);
        for (std::size_t i = 0; i < wanted.size(); i += size) {
            reference_element(op, basic, wanted.data() + i, origin.data() + i);
        }
        kernel(GetParam(), op, basic)(array.data(), array.data(), 1000);
        for (std::size_t i = 0; i < array.size(); ++i) {
            ASSERT_TRUE(array[i] == wanted[i] || is_unused_byte(basic, i % size)) << name(op) << " on " << name(basic);
        }
    });
}

TEST_P(OpKernelsIn, KeepNanOfTheTargetAndIgnoreNanOfTheOrigin) {
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    for (const Op op : {Op::Max, Op::Min}) {
        if (const Kernel run = kernel(GetParam(), op, Basic::F64)) {
            std::vector<double> target(19, nan);
            const std::vector<double> ones(19, 1.0);
            run(target.data(), ones.data(), target.size());
            EXPECT_TRUE(std::all_of(target.begin(), target.end(), [](double v) { return std::isnan(v); }));
            target = ones;
            run(target.data(), std::vector<double>(19, nan).data(), target.size());
            EXPECT_EQ(target, ones);
        }
    }
}

TEST_P(OpKernelsIn, KeepTheZeroOfTheTarget) {
    for (const Op op : {Op::Max, Op::Min}) {
        if (const Kernel run = kernel(GetParam(), op, Basic::F64)) {
            for (const double zero : {0.0, -0.0}) {
                std::vector<double> target(19, zero);
                run(target.data(), std::vector<double>(19, -zero).data(), target.size());
                for (const double result : target) {
                    EXPECT_EQ(std::signbit(result), std::signbit(zero)) << name(op);
                }
            }
        }
    }
}

std::string isa_label(const testing::TestParamInfo<Isa>& info) {
    return info.param == Isa::Baseline ? "Baseline" : info.param == Isa::Avx2 ? "Avx2" : "Avx512";
}

INSTANTIATE_TEST_SUITE_P(EveryIsa, OpKernelsIn, testing::Values(Isa::Baseline, Isa::Avx2, Isa::Avx512), isa_label);

TEST(OpKernels, AreAdmittedAsTheStandardSays) {
    for_each_pair([](Op op, Basic basic) {
        EXPECT_EQ(admits(op, basic), expect_admitted(op, basic)) << name(op) << " on " << name(basic);
        Kernel best = nullptr;
        for (const Isa isa : {Isa::Avx512, Isa::Avx2, Isa::Baseline})
            if (best == nullptr) best = kernel(isa, op, basic);
        EXPECT_EQ(kernel(op, basic), best);
    });
    EXPECT_EQ(kernel(Isa::Count, Op::Sum, Basic::I32), nullptr);
}

TEST(OpKernels, TakeNullForNoElements) {
    for_each_pair([](Op op, Basic basic) {
        if (const Kernel run = kernel(op, basic)) {
            run(nullptr, nullptr, 0);
        }
    });
}

TEST(OpTypes, HaveTheLayoutOfC) {
    for (const Expected& row : expectations) {
        EXPECT_EQ(element_size(row.basic), row.size) << name(row.basic);
        EXPECT_EQ(significant_size(row.basic), row.significant) << name(row.basic);
        const DataRuns data = data_runs(row.basic);
        EXPECT_EQ(data.count, row.kind == 'P' ? 2 : 1);
        std::size_t sum = 0;
        for (std::size_t i = 0; i < data.count; ++i) {
            sum += data.run[i].size;
            EXPECT_LE(data.run[i].offset + data.run[i].size, row.size);
        }
        EXPECT_EQ(sum, row.significant) << name(row.basic);
    }
    EXPECT_EQ(data_runs(Basic::ShortInt).run[1].offset, 4);
    EXPECT_EQ(data_runs(Basic::DoubleInt).run[1].offset, 8);
    for (const Basic none : {Basic::None, Basic::Count}) {
        EXPECT_EQ(element_size(none), 0U);
        EXPECT_EQ(data_runs(none).count, 0);
    }
}

TEST(OpTypes, AreComparedByTheirData) {
    for (const Expected& row : expectations) {
        EXPECT_EQ(admits_compare(row.basic), std::string_view("ILB").find(row.kind) != std::string_view::npos);
        const Bytes original = random_array(row.basic, 1);
        const DataRuns data = data_runs(row.basic);
        for (std::size_t i = 0; i < row.size; ++i) {
            Bytes changed = original;
            changed[i] ^= 0x10;
            bool is_data = false;
            for (std::size_t p = 0; p < data.count; ++p) {
                is_data |= i >= data.run[p].offset && i < std::size_t{data.run[p].offset} + data.run[p].size;
            }
            EXPECT_EQ(equal(row.basic, original.data(), changed.data()), !is_data) << name(row.basic) << " byte " << i;
        }
        EXPECT_TRUE(equal(row.basic, original.data(), Bytes(original).data()));
    }
}

TEST(OpTypes, HaveDistinctNames) {
    std::set<std::string> names;
    for (int op = 0; op < static_cast<int>(Op::Count); ++op) {
        names.insert(name(static_cast<Op>(op)));
    }
    EXPECT_EQ(names.size(), static_cast<std::size_t>(Op::Count));
    names.clear();
    for (int basic = 0; basic < static_cast<int>(Basic::Count); ++basic) {
        names.insert(name(static_cast<Basic>(basic)));
    }
    EXPECT_EQ(names.size(), static_cast<std::size_t>(Basic::Count));
    EXPECT_STREQ(name(Op::Count), "invalid");
    EXPECT_STREQ(name(Basic::Count), "invalid");
}

}  // namespace
}  // namespace osc::op::reference
