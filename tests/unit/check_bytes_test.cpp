// The ranges of bytes that the usage checker computes with: of layouts, and of the local buffers in use.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "plugins/verify/bytes.h"
#include "plugins/verify/local_buffers.h"

namespace osc::check {
namespace {

op::Layout vector_of(Basic basic, std::size_t blocks, std::size_t length, std::ptrdiff_t stride) {
    op::LayoutBuilder builder;
    const op::Layout leaf = op::Layout::leaf(basic);
    builder.add_strided(0, blocks, length, stride, leaf);
    return builder.finish(static_cast<std::ptrdiff_t>(blocks - 1) * stride +
                          static_cast<std::ptrdiff_t>(length) * leaf.extent());
}

TEST(CheckBytes, ContiguousElementsAreOneRange) {
    std::vector<Bytes> bytes;
    EXPECT_TRUE(find_bytes(op::Layout::leaf(Basic::I32), 5, 100, bytes));
    EXPECT_EQ(bytes, (std::vector<Bytes>{{100, 120}}));
}

TEST(CheckBytes, NoElementsAreNoRange) {
    std::vector<Bytes> bytes;
    EXPECT_TRUE(find_bytes(op::Layout::leaf(Basic::I32), 0, 100, bytes));
    EXPECT_TRUE(bytes.empty());
    EXPECT_EQ(text_of(bytes), "none");
}

TEST(CheckBytes, BlocksOfSeveralElementsTouchOrNot) {
    std::vector<Bytes> bytes;
    // The last block of the first element touches the first block of the second.
    EXPECT_TRUE(find_bytes(vector_of(Basic::I32, 2, 1, 12), 2, 8, bytes));
    EXPECT_EQ(bytes, (std::vector<Bytes>{{8, 12}, {20, 28}, {36, 40}}));
    EXPECT_EQ(text_of(bytes), "[8, 12) and 2 more ranges");
}

TEST(CheckBytes, BackwardStridesAreAscending) {
    std::vector<Bytes> bytes;
    EXPECT_TRUE(find_bytes(vector_of(Basic::I64, 3, 1, -16), 1, 64, bytes));
    EXPECT_EQ(bytes, (std::vector<Bytes>{{32, 40}, {48, 56}, {64, 72}}));
}

TEST(CheckBytes, TooManyBlocksAreOneRangeAroundThem) {
    std::vector<Bytes> bytes;
    EXPECT_FALSE(find_bytes(vector_of(Basic::I8, 5000, 1, 2), 1, 0, bytes));
    EXPECT_EQ(bytes, (std::vector<Bytes>{{0, 9999}}));
}

TEST(CheckBytes, ComplexTypesAlignLikeTheirParts) {
    EXPECT_EQ(alignment_of(Basic::C64), alignof(double));
    EXPECT_EQ(alignment_of(Basic::DoubleInt), alignof(double));
    EXPECT_EQ(alignment_of(Basic::LongDouble), alignof(long double));
    EXPECT_EQ(alignment_of(Basic::Byte), 1);
    EXPECT_EQ(alignment_of(Basic::None), 1);
}

}  // namespace
}  // namespace osc::check
