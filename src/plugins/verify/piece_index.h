// Pieces, each with a value, found by the bytes that they share with another piece. Columns of a matrix lie between
// each other, so that their whole ranges overlap, but no two share a byte: rows of one stride are also found by where
// their blocks begin modulo the stride. Columns of a thousand, or of a million, then take as long to tell apart.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <tuple>

#include "plugins/verify/pieces.h"

namespace osc::check {

/// `Value` has an order. Two pieces of one value begin at different bytes. One thread at a time.
template <class Value>
class PieceIndex {
  public:
    void insert(const Piece& piece, Value value) {
        Rows& rows = by_stride_[piece.stride];
        rows.whole.insert(piece.lo, piece.hi(), piece, value);
        if (const std::int64_t at = begin_in(piece.stride, piece.lo); piece.stride != 0)
            rows.blocks.insert(at, at + piece.bytes, piece, value);
    }
    void erase(const Piece& piece, Value value) {
        const auto rows = by_stride_.find(piece.stride);
        if (rows == by_stride_.end()) return;
        if (rows->second.whole.erase(piece.lo, piece.hi(), piece, value)) return void(by_stride_.erase(rows));
        if (const std::int64_t at = begin_in(piece.stride, piece.lo); piece.stride != 0)
            rows->second.blocks.erase(at, at + piece.bytes, piece, value);
    }

    /// Replaces `piece` by one that begins at the same byte.
    void replace(const Piece& piece, const Piece& by, Value value) {
        const auto rows = by_stride_.find(piece.stride);
        if (piece.stride == by.stride && (piece.stride == 0 || piece.bytes == by.bytes) && rows != by_stride_.end() &&
            rows->second.whole.replace(piece.lo, piece.hi(), by.hi(), by, value)) {
            const std::int64_t at = begin_in(piece.stride, piece.lo);
            rows->second.blocks.replace(at, at + piece.bytes, at + piece.bytes, by, value);
            return;
        }
        erase(piece, value);
        insert(by, value);
    }

    /// Calls visit(piece, value) until it returns false, and returns whether it never did. The pieces that share bytes
    /// with `one` are visited, some of them several times, and few others.
    template <class Visit>
    bool visit(const Piece& one, Visit&& visit) const {
        return std::ranges::all_of(by_stride_,
                                   [&](const auto& rows) { return rows.second.visit(rows.first, one, visit); });
    }

  private:
    static constexpr std::int64_t kFew = 8;

    static std::int64_t begin_in(std::int64_t stride, std::int64_t byte) {
        return stride == 0 ? 0 : (byte % stride + stride) % stride;
    }

    // Ranges [lo, hi) of pieces, by the power of two of their length: one that overlaps begins less than that before.
    class Ranges {
      public:
        void insert(std::int64_t lo, std::int64_t hi, const Piece& piece, Value value) {
            by_power_[power_of(lo, hi)].emplace(Key{lo, piece.lo, value}, Range{hi, piece});
        }
        /// Whether none is left.
        bool erase(std::int64_t lo, std::int64_t hi, const Piece& piece, Value value) {
            const auto ranges = by_power_.find(power_of(lo, hi));
            if (ranges == by_power_.end()) return false;
            ranges->second.erase({lo, piece.lo, value});
            if (ranges->second.empty()) by_power_.erase(ranges);
            return by_power_.empty();
        }
        /// False if it stands elsewhere then.
        bool replace(std::int64_t lo, std::int64_t hi, std::int64_t new_hi, const Piece& by, Value value) {
            if (power_of(lo, hi) != power_of(lo, new_hi)) return false;
            const auto ranges = by_power_.find(power_of(lo, hi));
            if (ranges == by_power_.end()) return false;
            const auto range = ranges->second.find({lo, by.lo, value});
            if (range != ranges->second.end()) range->second = {new_hi, by};
            return range != ranges->second.end();
        }
        template <class Visit>
        bool visit(std::int64_t lo, std::int64_t hi, Visit&& visit) const {
            for (const auto& [power, ranges] : by_power_)
                for (auto at = ranges.lower_bound({lo - (std::int64_t{1} << power), lo, Value{}}); at != ranges.end();
                     ++at) {
                    const auto& [begin, piece_lo, value] = at->first;
                    if (begin >= hi) break;
                    if (at->second.hi > lo && !visit(at->second.piece, value)) return false;
                }
            return true;
        }

      private:
        using Key = std::tuple<std::int64_t, std::int64_t, Value>;  // where range and piece begin
        struct Range {
            std::int64_t hi;
            Piece piece;
        };
        static int power_of(std::int64_t lo, std::int64_t hi) {
            return std::bit_width(static_cast<std::uint64_t>(hi - lo));
        }
        std::map<int, std::map<Key, Range>> by_power_;
    };

    // The pieces of one stride.
    struct Rows {
        Ranges whole;   // from the first to the last byte
        Ranges blocks;  // of rows: the first block, modulo the stride

        template <class Visit>
        bool visit(std::int64_t stride, const Piece& one, Visit&& visit) const {
            const bool alike = stride != 0 && stride == one.stride;
            const bool single = stride == 0 && one.count == 1;
            std::int64_t left = single  ? std::numeric_limits<std::int64_t>::max()
                                : alike ? kFew
                                        : std::max(one.count, kFew);
            bool goes_on = true;
            const bool few = whole.visit(one.lo, one.hi(), [&](const Piece& piece, Value value) {
                return --left >= 0 && (goes_on = visit(piece, value));
            });
            if (few || !goes_on) return goes_on;
            if (alike) return visit_blocks(stride, one, one.lo, one.hi(), visit);
            for (std::int64_t block = 0; block < one.count; ++block) {
                const std::int64_t lo = one.lo + block * one.stride;
                if (!visit_blocks(stride, one, lo, lo + one.bytes, visit)) return false;
            }
            return true;
        }
        // The pieces in [lo, hi) with a block that shares bytes, modulo the stride, with the one that begins at `lo`.
        template <class Visit>
        bool visit_blocks(std::int64_t stride, const Piece& one, std::int64_t lo, std::int64_t hi,
                          Visit&& visit) const {
            if (one.bytes >= stride) return whole.visit(lo, hi, visit);
            const std::int64_t at = begin_in(stride, lo);
            return std::ranges::all_of(
                std::initializer_list<std::int64_t>{at - stride, at, at + stride}, [&](std::int64_t from) {
                    return blocks.visit(from, from + one.bytes, [&](const Piece& piece, Value value) {
                        return piece.lo >= hi || piece.hi() <= lo || visit(piece, value);
                    });
                });
        }
    };
    std::map<std::int64_t, Rows> by_stride_;
};

}  // namespace osc::check
