// The atomics of tcp;ofi_rxm on rows of elements, against the kernels that the target uses otherwise: all types and
// operations that the provider claims, on this process's own memory.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "fabric/endpoint.h"
#include "op/kernels.h"
#include "real_provider.h"

namespace osc::test {
namespace {

using fabric::AtomicRow;
using fabric::RowForm;

class ProviderRows : public ::testing::Test {
  protected:
    static constexpr std::size_t kBytes = 65536;

    void SetUp() override {
#ifdef __SANITIZE_THREAD__
        GTEST_SKIP() << "ThreadSanitizer does not see how libfabric orders its accesses";
#endif
        std::string why;
        endpoint_.reset(fabric::open({real_provider(), "", true, true}, why));
        if (endpoint_ == nullptr) GTEST_SKIP() << why;
        ASSERT_STREQ(endpoint_->atomics_flaw(), "");
        ASSERT_TRUE(endpoint_->insert(endpoint_->address(), self_));
        ASSERT_TRUE(endpoint_->expose(memory_.data(), kBytes, exposed_));
    }
    void TearDown() override {
        if (endpoint_ != nullptr) endpoint_->revoke(exposed_);
    }

    template <class T>
    void limits(std::byte* to, std::size_t count) {
        constexpr bool exact = std::numeric_limits<T>::is_integer;
        const T values[] = {0,
                            1,
                            std::numeric_limits<T>::max(),
                            std::numeric_limits<T>::lowest(),
                            exact ? T{7} : static_cast<T>(0.75),
                            exact ? T{2} : static_cast<T>(1e30)};
        for (std::size_t i = 0; i < count; ++i) {
            const T value = values[random_() % std::size(values)];
            std::memcpy(to + i * sizeof value, &value, sizeof value);
        }
    }
    void fill(std::byte* to, Basic type, std::size_t count) {
        if (type == Basic::F32) return limits<float>(to, count);
        if (type == Basic::F64) return limits<double>(to, count);
        const bool logical = type == Basic::Bool;
        for (std::size_t i = 0; i < count * op::element_size(type); ++i)
            to[i] = static_cast<std::byte>(logical ? random_() % 2 : random_() % 4 == 0 ? 0 : random_());
    }

    // Elements before and behind the row stay as they are.
    void compare(RowForm form, Basic type, Op op, std::size_t count) {
        const std::size_t width = op::element_size(type);
        AtomicRow row(form, type, op, count, width);
        fill(memory_.data(), type, count + 2);
        fill(row.operands(), type, count);
        std::vector<std::byte> after(memory_.begin(),
                                     memory_.begin() + static_cast<std::ptrdiff_t>((count + 2) * width));
        const std::vector<std::byte> before(after.begin() + static_cast<std::ptrdiff_t>(width),
                                            after.end() - static_cast<std::ptrdiff_t>(width));
        if (form == RowForm::Swap) {
            fill(row.expected(), type, count);
            for (std::size_t i = 0; i < count; ++i) {
                if (i % 2 == 0) std::memcpy(row.expected() + i * width, before.data() + i * width, width);
                if (std::memcmp(row.expected() + i * width, before.data() + i * width, width) == 0)
                    std::memcpy(after.data() + (i + 1) * width, row.operands() + i * width, width);
            }
        } else if (op != Op::NoOp) {
            op::kernel(op, type)(after.data() + width, row.operands(), count);
        }
        ASSERT_EQ(perform(*endpoint_,
                          [&](fabric::Operation& operation) {
                              return endpoint_->update(self_, row, exposed_.base + width, exposed_.key, operation);
                          }),
                  0);
        EXPECT_EQ(std::memcmp(memory_.data(), after.data(), after.size()), 0);
        if (form != RowForm::Update) {
            EXPECT_EQ(std::memcmp(row.before(), before.data(), before.size()), 0);
        }
    }

    std::unique_ptr<fabric::Endpoint> endpoint_;
    fabric::PeerId self_ = 0;
    fabric::Exposed exposed_;
    alignas(64) std::array<std::byte, kBytes> memory_{};
    std::mt19937_64 random_{1};
};

TEST_F(ProviderRows, DoWhatTheKernelsDo) {
    int pairs = 0;
    for (auto t = static_cast<int>(Basic::I8); t < static_cast<int>(Basic::Count); ++t) {
        for (auto o = static_cast<int>(Op::Max); o < static_cast<int>(Op::Count); ++o) {
            const auto type = static_cast<Basic>(t);
            const auto op = static_cast<Op>(o);
            if (!op::admits(op, type)) continue;
            SCOPED_TRACE(std::string(op::name(type)) + ' ' + op::name(op));
            for (const RowForm form : {RowForm::Update, RowForm::Fetch}) {
                const std::size_t most = endpoint_->longest_row(form, type, op);
                if (most == 0) continue;
                ++pairs;
                for (const std::size_t count : {std::size_t{1}, std::size_t{13}, most})
                    if ((count + 2) * op::element_size(type) <= kBytes) compare(form, type, op, count);
            }
        }
    }
    for (const Basic type : {Basic::I8, Basic::U16, Basic::I32, Basic::U64, Basic::Bool, Basic::Logical4})
        compare(RowForm::Swap, type, Op::None, 11);
    EXPECT_GT(pairs, 100);
}

}  // namespace
}  // namespace osc::test
