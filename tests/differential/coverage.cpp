// Counting combinations.
#include "coverage.h"

#include <cstdio>

namespace diff {
namespace {

template <class E>
std::size_t index(E value) {
    return static_cast<std::size_t>(value);
}

bool single(Call call) {
    return call == Call::FetchAndOp || call == Call::CompareAndSwap;
}

bool possible(Call call, Shape shape) {
    if (call == Call::CompareAndSwap) return shape == Shape::Plain;
    if (call == Call::FetchAndOp) return shape == Shape::Plain || shape == Shape::Pair;
    return true;
}

bool possible(Call call, Sync sync) {
    return !has_request(call) || passive(sync);
}

bool possible(Flavor, Call) {
    return true;
}

bool possible(Flavor, Sync) {
    return true;
}

// Prints one table, row by row, and counts the empty cells that could be filled.
template <class Row, class Column, std::size_t R, std::size_t C>
int table(const long (&counts)[R][C], const char* title, bool print) {
    int empty = 0;
    if (print) std::printf("  %s (fewest first column: the emptiest pair of each row)\n", title);
    for (std::size_t r = 0; r < R; ++r) {
        long least = -1;
        std::size_t at = 0;
        long sum = 0;
        for (std::size_t c = 0; c < C; ++c) {
            if (!possible(static_cast<Row>(r), static_cast<Column>(c))) continue;
            sum += counts[r][c];
            if (least < 0 || counts[r][c] < least) {
                least = counts[r][c];
                at = c;
            }
            if (counts[r][c] != 0) continue;
            ++empty;
            std::printf("  EMPTY: %s with %s\n", name_of(static_cast<Row>(r)), name_of(static_cast<Column>(c)));
        }
        if (print)
            std::printf("    %-18s %8ld, least %6ld with %s\n", name_of(static_cast<Row>(r)), sum, least,
                        name_of(static_cast<Column>(at)));
    }
    return empty;
}

}  // namespace

void Coverage::note(Flavor flavor, Sync sync, const Operation& op) {
    note(flavor, sync, op.call, *op.basic, op.there.shape, op.here.shape);
}

void Coverage::note(Flavor flavor, Sync sync, Call call, const Basic& basic, Shape there, Shape here) {
    ++operations_;
    ++flavor_call_[index(flavor)][index(call)];
    ++call_sync_[index(call)][index(sync)];
    ++flavor_sync_[index(flavor)][index(sync)];
    ++call_shape_[index(call)][index(there)];
    if (here != there && !single(call)) {
        ++call_shape_[index(call)][index(here)];
        if (here != Shape::Plain && there != Shape::Plain) ++call_shape_[index(call)][index(Shape::Mixed)];
    }
    if (basic.group == Group::Pair) ++call_shape_[index(call)][index(Shape::Pair)];
    ++basic_[static_cast<std::size_t>(&basic - basics().data())];
}

int Coverage::report(bool print) const {
    if (print) std::printf("differential: %ld operations\n", operations_);
    int empty = table<Flavor, Call>(flavor_call_, "flavour x operation", print);
    empty += table<Call, Shape>(call_shape_, "operation x datatype class", print);
    empty += table<Call, Sync>(call_sync_, "operation x synchronisation", print);
    empty += table<Flavor, Sync>(flavor_sync_, "flavour x synchronisation", print);
    for (std::size_t i = 0; i < basic_.size(); ++i) {
        if (basic_[i] != 0) continue;
        ++empty;
        std::printf("  EMPTY: %s\n", basics()[i].name);
    }
    return empty;
}

}  // namespace diff
