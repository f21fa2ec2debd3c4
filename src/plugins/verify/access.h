// An access as conflict detection keeps it and sends it to the target, and the rules by which two of them conflict
// (MPI 4.1 sections 12.3.4 and 12.7).
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

#include "plugins/verify/events.h"
#include "plugins/verify/pieces.h"

namespace osc::check {

/// The epoch in which the origin issued an access.
enum class World : std::uint8_t { Fence, Pscw, Lock };

inline constexpr std::int64_t kNotYet = std::numeric_limits<std::int64_t>::max();

/// What is known of an access, apart from its bytes. Trivially copyable: processes of a job exchange it as it is.
struct Access {
    std::uint64_t site = 0;
    std::int64_t issued = 0;         // ns: not earlier than the call
    std::int64_t ended = kNotYet;    // ns: not later than the completion at the target; kNotYet: pending
    std::int64_t began = 0;          // ns: not later than the call; of notified operations
    std::int64_t notification = -1;  // the target's counter that its completion increments; -1: none
    std::uint64_t fence = 0;         // fences of the window that the origin had entered before
    std::uint64_t exposure = 0;      // World::Pscw: counts the origin's starts on this target, from 1
    char call[24] = {};              // "MPI_Put"
    op::OpKind kind = op::OpKind::Put;
    Op op = Op::None;
    Basic basic = Basic::None;
    World world = World::Fence;
    bool exclusive = false;  // World::Lock: under an exclusive lock
    bool local = false;      // a load (kind Get) or store (Put) of the target itself, which nothing completes

    bool reads() const { return kind == op::OpKind::Get || op == Op::NoOp; }  // it leaves the target as it is
    bool atomic() const { return kind != op::OpKind::Put && kind != op::OpKind::Get; }
};

/// The bytes of an element of an accumulate, which lie at multiples of it from each other. 1 for other accesses, whose
/// bytes stand alone, and for pairs with padding, whose blocks are parts of elements.
std::int64_t element_of(const Access& access);

/// An access and its bytes at the target: at least one piece, each behind the last byte of the one before.
struct Entry {
    Access access;
    std::vector<Piece> pieces;

    std::int64_t lo() const { return pieces.front().lo; }
    std::int64_t hi() const { return pieces.back().hi(); }
};

using Entries = std::deque<Entry>;  // which stay where they are

/// What the info of a window promises about its accumulates.
struct Promises {
    bool same_op = false;  // accumulate_ops=same_op: MPI_NO_OP counts as another operation
    bool one_op = false;   // the program set accumulate_ops, which binds ordered accumulates of one origin too
    bool ordered = true;   // accumulate_ordering has waw: one origin's updates of a location are ordered
};

/// Why two unordered accesses conflict.
enum class Clash : std::uint8_t { None, Update, Types, Operations, Elements };

/// Whether unordered accesses of these kinds conflict if they share bytes. Clash::Elements: only if elements overlap in
/// part, which share() decides.
Clash clash(const Access& a, const Access& b, bool same_origin, Promises promises);

/// Whether two accesses that clash() so share bytes; `where` is the first such place found.
bool share(const Entry& a, const Entry& b, Clash clash, Bytes& where);

/// The first accesses of two entries that conflict.
struct Conflict {
    Access accesses[2];
    std::uint32_t origins[2] = {};
    std::uint32_t target = 0;
    Bytes where;
    Clash clash = Clash::None;
};

}  // namespace osc::check
