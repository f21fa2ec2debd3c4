// Rows of blocks against sets of bytes: random small rows, and long ones that only arithmetic can compare.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "plugins/verify/piece_index.h"

namespace osc::check {
namespace {

using Set = std::set<std::int64_t>;

Set set_of(const Piece& piece) {
    Set bytes;
    for (std::int64_t block = 0; block < piece.count; ++block)
        for (std::int64_t byte = 0; byte < piece.bytes; ++byte)
            bytes.insert(piece.lo + block * piece.stride + byte);
    return bytes;
}

// The blocks that begin in each element of `size` bytes: byte -> begin of its element.
std::set<std::pair<std::int64_t, std::int64_t>> elements_of(const Piece& piece, std::int64_t size) {
    std::set<std::pair<std::int64_t, std::int64_t>> elements;
    for (std::int64_t block = 0; block < piece.count; ++block)
        for (std::int64_t byte = 0; byte < piece.bytes; ++byte)
            elements.emplace(piece.lo + block * piece.stride + byte,
                             piece.lo + block * piece.stride + byte / size * size);
    return elements;
}

Piece random_piece(std::mt19937& random, std::int64_t unit) {
    const auto below = [&](std::int64_t limit) {
        return static_cast<std::int64_t>(random() % static_cast<unsigned>(limit));
    };
    Piece piece;
    piece.lo = below(40);
    piece.bytes = (1 + below(3)) * unit;
    piece.count = 1 + below(8);
    piece.stride = piece.count > 1 ? piece.bytes + 1 + below(9) : 0;
    return piece;
}

TEST(Pieces, OverlapIsThatOfTheBytes) {
    std::mt19937 random(1);
    int shared = 0;
    for (int i = 0; i < 20000; ++i) {
        const Piece a = random_piece(random, 1);
        const Piece b = random_piece(random, 1);
        const Set bytes_a = set_of(a);
        const Set bytes_b = set_of(b);
        bool expected = false;
        for (const std::int64_t byte : bytes_a)
            expected = expected || bytes_b.count(byte) > 0;
        Bytes where;
        ASSERT_EQ(overlap(a, b, where), expected) << i;
        if (!expected) continue;
        ++shared;
        ASSERT_LT(where.lo, where.hi);
        for (std::int64_t byte = where.lo; byte < where.hi; ++byte)
            ASSERT_TRUE(bytes_a.count(byte) > 0 && bytes_b.count(byte) > 0) << i;
    }
    EXPECT_GT(shared, 1000);
    EXPECT_LT(shared, 19000);
}

TEST(Pieces, ElementsThatCross) {
    std::mt19937 random(2);
    int crossing = 0;
    for (int i = 0; i < 20000; ++i) {
        const std::int64_t size = 1 + static_cast<std::int64_t>(random() % 4);
        const Piece a = random_piece(random, size);
        const Piece b = random_piece(random, size);
        bool expected = false;
        const auto elements_b = elements_of(b, size);
        for (const auto& [byte, begin] : elements_of(a, size)) {
            const auto at = elements_b.lower_bound({byte, 0});
            expected = expected || (at != elements_b.end() && at->first == byte && at->second != begin);
        }
        Bytes where;
        ASSERT_EQ(crosses(a, b, size, where), expected) << i;
        crossing += expected ? 1 : 0;
    }
    EXPECT_GT(crossing, 1000);
}

TEST(Pieces, ContainsNeverClaimsTooMuch) {
    std::mt19937 random(3);
    int inside = 0;
    for (int i = 0; i < 50000; ++i) {
        const Piece outer = random_piece(random, 2);
        Piece inner = random_piece(random, 1);
        if (i % 4 == 0) inner = {outer.lo + (outer.count - 1) * outer.stride, 1, 0, 1};
        if (!contains(outer, inner)) continue;
        ++inside;
        const Set bytes = set_of(outer);
        for (const std::int64_t byte : set_of(inner))
            ASSERT_TRUE(bytes.count(byte) > 0) << i;
    }
    EXPECT_GT(inside, 1000);
    EXPECT_TRUE(contains({0, 8, 0, 1}, {2, 4, 0, 1}));
    EXPECT_TRUE(contains({0, 8, 16, 4}, {32, 8, 0, 1}));
    EXPECT_FALSE(contains({0, 8, 16, 4}, {40, 8, 0, 1}));
}

TEST(Pieces, RangesKeepTheirBytes) {
    std::mt19937 random(4);
    for (int i = 0; i < 5000; ++i) {
        const std::int64_t unit = 1 + static_cast<std::int64_t>(random() % 4);
        std::vector<Bytes> ranges;
        Set bytes;
        std::int64_t at = 0;
        for (auto n = random() % 12; n > 0; --n) {
            at += 1 + static_cast<std::int64_t>(random() % 3) * unit;
            const std::int64_t length = (1 + static_cast<std::int64_t>(random() % 2)) * unit;
            ranges.push_back({at, at + length});
            for (std::int64_t byte = at; byte < at + length; ++byte)
                bytes.insert(byte);
            at += length;
        }
        Set kept;
        for (const Piece& piece : pieces_of(ranges, unit)) {
            kept.merge(set_of(piece));
            ASSERT_TRUE(piece.count == 1 || piece.stride % unit == 0);
        }
        ASSERT_EQ(kept, bytes) << i;
    }
}

// The index against all its pieces, one by one; with enough of each stride that it looks at their blocks.
TEST(Pieces, TheIndexFindsAllThatShareBytes) {
    std::mt19937 random(5);
    for (const std::size_t members : {5, 300}) {
        PieceIndex<std::size_t> index;
        std::map<std::size_t, Piece> all;
        for (std::size_t i = 0; i < 4000; ++i) {
            Piece piece = random_piece(random, 1);
            piece.lo += static_cast<std::int64_t>(random() % 8) * 50 - 200;
            index.insert(piece, i);
            all[i] = piece;
            if (i % 3 == 0) {  // a row grows, or becomes another one
                Piece by = piece;
                if (by.count == 1)
                    by.bytes += static_cast<std::int64_t>(random() % 4);
                else
                    by.count += static_cast<std::int64_t>(random() % 4);
                if (i % 9 == 0) by = {by.lo, by.bytes, by.bytes + 2, by.count + 1};
                index.replace(piece, by, i);
                all[i] = by;
            }
            if (i >= members) {
                const auto old = i - members;
                index.erase(all.at(old), old);
                all.erase(old);
            }
            if (i % 8 != 0) continue;
            Piece one = random_piece(random, 1);
            one.lo += static_cast<std::int64_t>(random() % 8) * 50 - 200;
            std::set<std::size_t> found, expected;
            EXPECT_TRUE(index.visit(one, [&](const Piece& other, std::size_t value) {
                Bytes where;
                EXPECT_EQ(other, all.at(value));
                if (overlap(one, other, where)) found.insert(value);
                return true;
            }));
            Bytes where;
            for (const auto& [value, other] : all)
                if (overlap(one, other, where)) expected.insert(value);
            ASSERT_EQ(found, expected) << i;
        }
    }
}

// Rows that lie between each other, one behind the other, and as tiles: what the index looks at does not grow with
// them.
TEST(Pieces, TheIndexLooksAtFewPieces) {
    const auto look = [](std::int64_t rows, auto&& row) {
        PieceIndex<std::int64_t> index;
        std::int64_t looked = 0;
        for (std::int64_t i = 0; i < rows; ++i) {
            EXPECT_TRUE(index.visit(row(i), [&](const Piece& other, std::int64_t) {
                Bytes where;
                ++looked;
                return !overlap(row(i), other, where);
            }));
            index.insert(row(i), i);
        }
        return looked / rows;
    };
    for (const std::int64_t rows : {1000, 16000}) {
        EXPECT_LT(look(rows, [&](std::int64_t i) { return Piece{8 * i, 8, 8 * rows + 8, 100}; }), 40);
        EXPECT_LT(look(rows, [&](std::int64_t i) { return Piece{1600 * i, 8, 16, 100}; }), 40);
        EXPECT_LT(look(rows,
                       [&](std::int64_t i) {
                           return Piece{100000 * (i / 50) + 16 * (i % 50), 16, 1000, 100};
                       }),
                  60);
        // Every tenth fills a block of nothing between the others.
        EXPECT_LT(look(rows,
                       [&](std::int64_t i) {
                           return Piece{16 * i, 8, i % 10 == 0 ? 0 : 16 * rows, i % 10 == 0 ? 1 : 64};
                       }),
                  200);
    }
}

TEST(Pieces, LongRowsTakeFewSteps) {
    const std::int64_t many = 1'000'000'000;
    const Piece even{0, 8, 16, many};
    const Piece odd{8, 8, 16, many};
    const Piece last{(many - 1) * 16 + 7, 1, 0, 1};
    Bytes where;
    EXPECT_FALSE(overlap(even, odd, where));
    EXPECT_TRUE(overlap(even, last, where));
    EXPECT_EQ(where, (Bytes{last.lo, last.lo + 1}));
    EXPECT_TRUE(overlap(even, {8, 8, 24, many}, where));
    EXPECT_EQ(where, (Bytes{32, 40}));
    EXPECT_FALSE(crosses(even, even, 8, where));
    EXPECT_TRUE(crosses(even, {4, 8, 16, many}, 8, where));
    EXPECT_EQ(where, (Bytes{4, 8}));
    const std::vector<Bytes> blocks{{0, 4}, {8, 12}, {16, 20}, {24, 28}};
    EXPECT_EQ(pieces_of(blocks, 4), (std::vector<Piece>{{0, 4, 8, 4}}));
}

}  // namespace
}  // namespace osc::check
