// Layouts, cursors, pair walks and packing against a plain list of bytes: whatever merges and strides the layout finds,
// the bytes come in typemap order.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include "op/copy.h"
#include "op/cursor.h"
#include "op/layout.h"
#include "op/type_info.h"

namespace {

using namespace osc;
using namespace osc::op;

/// A layout and, independent of it, the displacement of each of its bytes in typemap order.
struct Model {
    Layout layout;
    std::vector<std::ptrdiff_t> bytes;
};

Model leaf(Basic basic) {
    Model model{Layout::leaf(basic), {}};
    const DataRuns data = data_runs(basic);
    for (std::size_t i = 0; i < data.count; ++i)
        for (std::size_t j = 0; j < data.run[i].size; ++j)
            model.bytes.push_back(static_cast<std::ptrdiff_t>(data.run[i].offset + j));
    return model;
}

void append(std::vector<std::ptrdiff_t>& to, std::ptrdiff_t disp, std::size_t count, const Model& child) {
    for (std::size_t i = 0; i < count; ++i)
        for (const std::ptrdiff_t byte : child.bytes)
            to.push_back(disp + static_cast<std::ptrdiff_t>(i) * child.layout.extent() + byte);
}

Model strided(std::size_t count, std::size_t blocklength, std::ptrdiff_t stride, const Model& child,
              std::ptrdiff_t extent) {
    Model model;
    LayoutBuilder builder;
    builder.add_strided(0, count, blocklength, stride, child.layout);
    for (std::size_t i = 0; i < count; ++i)
        append(model.bytes, static_cast<std::ptrdiff_t>(i) * stride, blocklength, child);
    model.layout = builder.finish(extent);
    return model;
}

std::vector<std::ptrdiff_t> all_bytes(const Model& model, std::size_t count) {
    std::vector<std::ptrdiff_t> bytes;
    append(bytes, 0, count, model);
    return bytes;
}

std::vector<std::ptrdiff_t> walked(Cursor cursor) {
    std::vector<std::ptrdiff_t> bytes;
    while (!cursor.done()) {
        for (std::size_t i = 0; i < cursor.bytes(); ++i)
            bytes.push_back(cursor.offset() + static_cast<long>(i));
        cursor.advance(cursor.bytes());
    }
    return bytes;
}

/// A random layout; nested up to `depth` deep.
Model random_model(std::mt19937& random, int depth) {
    const auto pick = [&random](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    if (depth == 0) {
        static constexpr Basic basics[] = {Basic::U8,  Basic::I16,       Basic::I32,      Basic::F64,
                                           Basic::C64, Basic::DoubleInt, Basic::ShortInt, Basic::LongDoubleInt};
        return leaf(basics[pick(0, 7)]);
    }
    Model model;
    LayoutBuilder builder;
    const int parts = pick(0, 4);
    for (int part = 0; part < parts; ++part) {
        const Model child = random_model(random, depth - 1);
        const std::ptrdiff_t disp = pick(-64, 64);
        const auto count = static_cast<std::size_t>(pick(0, 4));
        const auto blocklength = static_cast<std::size_t>(pick(0, 3));
        const std::ptrdiff_t stride =
            pick(0, 2) == 0 ? child.layout.extent() * static_cast<std::ptrdiff_t>(blocklength) : pick(-40, 80);
        builder.add_strided(disp, count, blocklength, stride, child.layout);
        for (std::size_t i = 0; i < count; ++i)
            append(model.bytes, disp + static_cast<std::ptrdiff_t>(i) * stride, blocklength, child);
    }
    std::ptrdiff_t end = 0;
    if (!model.bytes.empty()) end = model.bytes.back() + 1 - model.bytes.front();
    model.layout = builder.finish(pick(0, 1) == 0 ? end : pick(-50, 200));
    return model;
}

TEST(Layout, LeavesKnowTheirPadding) {
    EXPECT_TRUE(Layout::leaf(Basic::F64).contiguous());
    EXPECT_EQ(Layout::leaf(Basic::F64).basic(), Basic::F64);
    const Layout pair = Layout::leaf(Basic::ShortInt);
    EXPECT_FALSE(pair.contiguous());
    EXPECT_EQ(pair.size(), 6u);
    EXPECT_EQ(pair.extent(), 8);
    EXPECT_EQ(pair.data().blocks(), 2u);
    EXPECT_EQ(pair.elements().blocks(), 1u);
    EXPECT_EQ(pair.elements().size(), 8u);
    EXPECT_EQ(Layout::leaf(Basic::None).size(), 0u);
    EXPECT_TRUE(Layout::leaf(Basic::IntInt).contiguous());
}

TEST(Layout, RegularVectorsAreOneRunOfAnyLength) {
    const Layout real = Layout::leaf(Basic::F64);
    LayoutBuilder builder;
    builder.add_strided(0, std::size_t{1} << 40, 1, 16, real);
    const Layout vector = builder.finish(std::ptrdiff_t{1} << 44);
    EXPECT_EQ(vector.data().runs().size(), 1u);
    EXPECT_EQ(vector.size(), std::size_t{1} << 43);
    builder.add(0, 1024, vector);  // the extent continues the stride
    EXPECT_EQ(builder.finish(std::ptrdiff_t{1} << 54).data().runs().size(), 1u);
    builder.add_strided(0, 100, 3, 24, real);  // touching groups are no vector at all
    EXPECT_TRUE(builder.finish(2400).contiguous());
}

TEST(Layout, BasicIsSharedOrNone) {
    LayoutBuilder builder;
    builder.add(0, 1, Layout::leaf(Basic::I32));
    builder.add(4, 0, Layout::leaf(Basic::F64));
    builder.add(8, 1, Layout::leaf(Basic::I32));
    EXPECT_EQ(builder.finish(12).basic(), Basic::I32);
    builder.add(0, 1, Layout::leaf(Basic::DoubleInt));
    builder.add(16, 1, Layout::leaf(Basic::I32));
    const Layout mixed = builder.finish(20);
    EXPECT_EQ(mixed.basic(), Basic::None);
    EXPECT_EQ(&mixed.elements(), &mixed.data());
    builder.add(0, 1, mixed);
    builder.add(20, 1, Layout::leaf(Basic::I32));
    EXPECT_EQ(builder.finish(24).basic(), Basic::None);
    EXPECT_EQ(builder.finish(0).size(), 0u);
}

TEST(Layout, BoundsCoverNegativeExtentsAndOverflow) {
    LayoutBuilder builder;
    builder.add(-8, 3, Layout::leaf(Basic::I32));
    const Layout forward = builder.finish(100);
    Bounds bounds;
    ASSERT_TRUE(forward.bounds(3, bounds));
    EXPECT_EQ(bounds.lo, -8);
    EXPECT_EQ(bounds.hi, 204);
    ASSERT_TRUE(forward.bounds(0, bounds));
    EXPECT_EQ(bounds.lo, bounds.hi);
    builder.add(0, 1, Layout::leaf(Basic::I32));
    const Layout backward = builder.finish(-16);
    ASSERT_TRUE(backward.bounds(3, bounds));
    EXPECT_EQ(bounds.lo, -32);
    EXPECT_EQ(bounds.hi, 4);
    EXPECT_FALSE(forward.bounds(std::numeric_limits<std::size_t>::max(), bounds));
    EXPECT_FALSE(forward.bounds(std::numeric_limits<std::size_t>::max() / 4, bounds));
    // Elements at one place: their number of bytes alone does not fit.
    builder.add(0, 1, Layout::leaf(Basic::F64));
    const Layout still = builder.finish(0);
    EXPECT_TRUE(still.bounds(std::size_t{1} << 59, bounds));
    EXPECT_FALSE(still.bounds(std::size_t{1} << 60, bounds));
    for (const std::ptrdiff_t sign : {1, -1}) {
        builder.add(0, 1, Layout::leaf(Basic::F64));
        const Layout wide = builder.finish(sign * (std::ptrdiff_t{1} << 62));
        EXPECT_TRUE(wide.bounds(1, bounds));
        EXPECT_TRUE(wide.bounds(2, bounds));
        EXPECT_FALSE(wide.bounds(4, bounds));  // the product is a multiple of 2^64
        EXPECT_FALSE(wide.bounds(5, bounds));
    }
}

TEST(Layout, DataOutsideEveryAddressSpaceAreRefused) {
    constexpr std::ptrdiff_t kFar = std::ptrdiff_t{1} << 62;
    constexpr std::ptrdiff_t kLeast = std::numeric_limits<std::ptrdiff_t>::min();
    const Layout real = Layout::leaf(Basic::F64);
    const auto refuses = [](std::ptrdiff_t disp, std::size_t count, std::size_t length, std::ptrdiff_t stride,
                            const Layout& child) {
        LayoutBuilder builder;
        EXPECT_THROW(builder.add_strided(disp, count, length, stride, child), std::overflow_error);
    };
    const auto resized = [&](std::ptrdiff_t extent) {
        LayoutBuilder builder;
        builder.add(0, 1, real);
        return builder.finish(extent);
    };
    for (const std::ptrdiff_t far : {kFar, -kFar, std::numeric_limits<std::ptrdiff_t>::max(), kLeast}) {
        refuses(far, 1, 1, 0, real);
        refuses(0, 2, 1, far, real);
        refuses(0, 4, 1, far, real);
        refuses(0, 1, 4, 0, resized(far));
        refuses(0, std::size_t{1} << 60, 3, far, resized(far));
    }
    refuses(max_displacement - 7, 1, 1, 0, real);
    refuses(-max_displacement - 1, 1, 1, 0, real);
    refuses(0, std::size_t{1} << 60, std::size_t{1} << 60, 0, real);
    refuses(0, std::size_t{1} << 59, 1, 0, real);

    LayoutBuilder builder;
    builder.add(max_displacement - 8, 1, real);
    builder.add(-max_displacement, 1, real);
    builder.add(kLeast, 0, real);  // no data
    builder.add_strided(kFar, 1, 0, kFar, resized(kFar));
    builder.add(0, 1, resized(kLeast));  // extent and stride of one element count for nothing
    const Layout ends = builder.finish(kFar);
    EXPECT_EQ(ends.true_lb(), -max_displacement);
    EXPECT_EQ(ends.true_extent(), std::size_t{max_displacement} * 2);
    EXPECT_EQ(ends.size(), 24u);
    for (int i = 0; i < 3; ++i)
        builder.add(0, std::size_t{1} << 56, real);
    EXPECT_THROW(builder.add(0, std::size_t{1} << 57, ends), std::overflow_error);
    builder.finish(0);
}

TEST(Layout, TooManyIrregularBlocksAreRefused) {
    constexpr std::size_t kMost = 1000;
    LayoutBuilder builder(kMost);
    builder.add(0, 1, Layout::leaf(Basic::U8));
    builder.add(7, 1, Layout::leaf(Basic::I16));
    const Layout irregular = builder.finish(20);
    builder.add(0, kMost / 2, irregular);
    EXPECT_EQ(builder.finish(20).data().blocks(), kMost);
    EXPECT_THROW(builder.add(0, kMost / 2 + 1, irregular), std::length_error);
}

TEST(Cursor, MergesAcrossElements) {
    const Model vector = strided(4, 1, 16, leaf(Basic::F64), 56);
    Cursor cursor(vector.layout.data(), 3);
    std::vector<std::size_t> pieces;
    for (; !cursor.done(); cursor.advance(cursor.bytes()))
        pieces.push_back(cursor.bytes());
    EXPECT_EQ(pieces, (std::vector<std::size_t>{8, 8, 8, 16, 8, 8, 16, 8, 8, 8}));
    Cursor solid(Layout::leaf(Basic::F64).data(), std::size_t{1} << 33);
    EXPECT_EQ(solid.bytes(), std::size_t{1} << 36);
}

TEST(Cursor, RandomLayoutsGiveTheBytesOfTheModel) {
    std::mt19937 random(7);
    for (int round = 0; round < 4000; ++round) {
        const Model model = random_model(random, 1 + round % 3);
        const std::size_t count = random() % 5;
        const auto expected = all_bytes(model, count);
        ASSERT_EQ(model.layout.size() * count, expected.size());
        ASSERT_EQ(walked(Cursor(model.layout.data(), count)), expected) << "round " << round;
        Bounds bounds;
        ASSERT_TRUE(model.layout.bounds(count, bounds));
        for (const std::ptrdiff_t byte : expected)
            ASSERT_TRUE(bounds.lo <= byte && byte < bounds.hi);
    }
}

/// A layout of exactly `bytes` bytes per element, or nothing usable.
Model random_of_size(std::mt19937& random, std::size_t bytes) {
    Model model;
    LayoutBuilder builder;
    const Model byte = leaf(Basic::U8);
    std::ptrdiff_t disp = 0;
    while (bytes != 0) {
        const std::size_t length = 1 + random() % std::min<std::size_t>(bytes, 1 + random() % 9);
        const std::size_t count = 1 + random() % std::max<std::size_t>(1, std::min<std::size_t>(bytes / length, 6));
        const std::ptrdiff_t stride = static_cast<std::ptrdiff_t>(length + random() % 3);
        builder.add_strided(disp, count, length, stride, byte.layout);
        for (std::size_t i = 0; i < count; ++i)
            append(model.bytes, disp + static_cast<std::ptrdiff_t>(i) * stride, length, byte);
        disp += static_cast<std::ptrdiff_t>(count) * stride + static_cast<std::ptrdiff_t>(random() % 4);
        bytes -= count * length;
    }
    model.layout = builder.finish(disp + static_cast<std::ptrdiff_t>(random() % 2));
    return model;
}

TEST(Walk, PairsMatchByteForByte) {
    std::mt19937 random(11);
    for (int round = 0; round < 4000; ++round) {
        const std::size_t size = 1 + random() % 60;
        const std::size_t a_count = 1 + random() % 4;
        const std::size_t b_count = 1 + random() % 4;
        const Model a = random_of_size(random, size * b_count);
        const Model b = random_of_size(random, size * a_count);
        const auto a_bytes = all_bytes(a, a_count);
        const auto b_bytes = all_bytes(b, b_count);
        ASSERT_EQ(a_bytes.size(), b_bytes.size());
        std::size_t at = 0;
        for_each_pair(a.layout, a_count, b.layout, b_count,
                      [&](std::ptrdiff_t from, std::ptrdiff_t to, std::size_t bytes) {
                          ASSERT_GT(bytes, 0u);
                          for (std::size_t i = 0; i < bytes; ++i, ++at) {
                              ASSERT_EQ(from + static_cast<long>(i), a_bytes[at]);
                              ASSERT_EQ(to + static_cast<long>(i), b_bytes[at]);
                          }
                      });
        ASSERT_EQ(at, a_bytes.size());

        std::vector<unsigned char> source(4096), target(4096), expected(4096);
        for (auto& byte : source)
            byte = static_cast<unsigned char>(random());
        for (std::size_t i = 0; i < a_bytes.size(); ++i)
            expected[static_cast<std::size_t>(b_bytes[i])] = source[static_cast<std::size_t>(a_bytes[i])];
        copy(b.layout, b_count, target.data(), a.layout, a_count, source.data());
        ASSERT_EQ(target, expected);
    }
}

TEST(TypeRef, KeepsTheLayoutWhileQueued) {
    TypeRef queued;
    {
        const TypeRef owner = TypeRef::adopt(new TypeInfo(1, Layout::leaf(Basic::F64), false));
        queued = TypeRef(owner.get());
        TypeRef moved(std::move(queued));
        queued = moved;
    }
    EXPECT_EQ(queued->size, 8u);
    EXPECT_TRUE(queued->contiguous);
}

}  // namespace
