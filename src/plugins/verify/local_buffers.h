// Watches the local buffers of operations that are not complete (MPI 4.1 section 12.3): the program must not change the
// origin buffer of a put or accumulate, and no other operation may use the buffer that a get writes.
//
// A buffer counts as in use until the program completes the operation by MPI's rules, also if libosc has copied it
// already: another library, or another path, may not have. Loads and stores are not seen; a changed buffer shows in a
// hash of its bytes.
#pragma once

#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "plugins/verify/events.h"

namespace osc::check {

class Ledger;

/// Ranges of addresses, each with the number of an operation. Disjoint: an address keeps its first operation.
class AddressMap {
  public:
    void add(Bytes range, std::uint64_t operation);
    /// An operation with a range that overlaps; 0: none.
    std::uint64_t find(Bytes range) const;

  private:
    struct Piece {
        std::int64_t hi;
        std::uint64_t operation;
    };
    std::map<std::int64_t, Piece> pieces_;  // by their first address
};

/// Part of a ledger, which calls it.
class LocalBuffers {
  public:
    explicit LocalBuffers(const Ledger& ledger) : ledger_(ledger) {}
    void on_operation(const Operation& operation);
    void before(const Synchronisation& call);

  private:
    struct Pending {
        std::string text;  // "MPI_Put of rank 1 to rank 0, bytes [0, 8)"
        Site site;
        std::vector<Bytes> reads;
        std::optional<std::uint64_t> hash;  // of the bytes that it reads; none if they were not mapped
    };
    // By target, and for an operation with a request by its number, else 0.
    using Key = std::pair<std::uint32_t, std::uint64_t>;
    // The operations of a key, which complete together.
    struct Group {
        std::unordered_map<std::uint64_t, Pending> operations;
        AddressMap reads;
        AddressMap writes;
    };

    const Pending* find(const AddressMap Group::*map, Bytes range) const;
    void look_for_overlaps(const Operation& operation) const;
    void look_for_changes(const Group& group, const Synchronisation& call) const;
    void complete(const Synchronisation& call);

    const Ledger& ledger_;
    std::map<Key, Group> groups_;
    std::size_t watched_ = 0;
};

}  // namespace osc::check
