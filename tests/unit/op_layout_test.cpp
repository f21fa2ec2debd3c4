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
#include "random_layouts.h"

namespace {

using namespace osc;
using namespace osc::op;
using namespace osc::test;

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

TEST(Layout, SubarraysAreOneRunInLoops) {
    Layout lines = Layout::leaf(Basic::F64);
    std::ptrdiff_t size = 8;
    LayoutBuilder builder;
    for (std::size_t dimension = 0; dimension < 5; ++dimension) {
        builder.add(size, 3, lines);
        size *= 8;
        lines = builder.finish(size);
    }
    EXPECT_EQ(lines.data().runs().size(), 1u);
    EXPECT_EQ(lines.data().loops().size(), 3u);
    EXPECT_EQ(lines.data().blocks(), 81u);
    EXPECT_EQ(lines.true_lb(), 8 + 64 + 512 + 4096 + 32768);
    builder.add(0, 1, lines);
    builder.add(1, 1, Layout::leaf(Basic::U8));  // a neighbour makes a list of it
    EXPECT_EQ(builder.finish(0).data().runs().size(), 82u);
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
    builder.add(0, kMost / 2 - 1, irregular);
    builder.add(std::ptrdiff_t{10} * kMost, 1, irregular);
    EXPECT_EQ(builder.finish(20).data().blocks(), kMost);
    builder.add(-20, 1, irregular);
    EXPECT_THROW(builder.add(0, kMost / 2, irregular), std::length_error);
    builder.finish(20);
    builder.add(0, kMost, irregular);  // alone, they are a loop
    EXPECT_EQ(builder.finish(20).data().runs().size(), 2u);
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

/// Whether pack and unpack in steps of random length move the bytes of the model, and bytes_within() counts those that
/// lie in a range.
bool packs(std::mt19937& random, const Model& model, std::size_t count) {
    const auto bytes = all_bytes(model, count);
    std::vector<unsigned char> memory(8192), array(bytes.size()), back(8192), expected(8192);
    for (auto& byte : memory)
        byte = static_cast<unsigned char>(random());
    constexpr std::size_t kZero = 4096;
    Cursor from(model.layout.data(), count);
    Cursor to(model.layout.data(), count);
    for (std::size_t done = 0; done < array.size();) {
        const std::ptrdiff_t lo = bytes[done] - static_cast<std::ptrdiff_t>(random() % 3);
        const std::ptrdiff_t hi = bytes[done] + static_cast<std::ptrdiff_t>(random() % 64);
        const std::size_t inside = from.bytes_within(lo, hi);
        for (std::size_t i = done; i < done + inside; ++i)
            if (bytes[i] < lo || bytes[i] >= hi) return false;
        if (inside == 0 && from.offset() >= lo && from.offset() + static_cast<std::ptrdiff_t>(from.bytes()) <= hi)
            return false;
        const std::size_t most = std::min<std::size_t>(array.size() - done, 1 + random() % 200);
        const std::size_t packed = pack(from, memory.data() + kZero, array.data() + done, most);
        if (packed == 0 || packed > most) return false;
        for (std::size_t unpacked = 0; unpacked < packed;)
            unpacked += unpack(to, back.data() + kZero, array.data() + done + unpacked, packed - unpacked);
        done += packed;
    }
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        const std::size_t place = kZero + static_cast<std::size_t>(bytes[i]);
        if (array[i] != memory[place]) return false;
        expected[place] = array[i];
    }
    return from.done() && to.done() && back == expected;
}

TEST(Copy, RandomLayoutsArePackedInSteps) {
    std::mt19937 random(5);
    for (int round = 0; round < 4000; ++round) {
        Model model = random_model(random, 1 + round % 3);
        auto bytes = all_bytes(model, 3);
        std::sort(bytes.begin(), bytes.end());
        if (std::adjacent_find(bytes.begin(), bytes.end()) != bytes.end()) continue;  // overlaps itself
        if (!bytes.empty() && (bytes.front() < -4000 || bytes.back() > 4000)) continue;
        ASSERT_TRUE(packs(random, model, random() % 4)) << "round " << round;
    }
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
        ASSERT_TRUE(packs(random, a, a_count) && packs(random, b, b_count)) << "round " << round;
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
