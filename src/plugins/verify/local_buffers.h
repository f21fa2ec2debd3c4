// Watches the local buffers of operations that are not complete (MPI 4.1 section 12.3): the program must not change the
// origin buffer of a put or accumulate, and no other operation may use the buffer that a get writes.
//
// A buffer counts as in use until the program completes the operation by MPI's rules, also if libosc has copied it
// already: another library, or another path, may not have. Loads and stores are not seen; a changed buffer shows in a
// hash of its bytes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plugins/verify/events.h"
#include "plugins/verify/piece_index.h"

namespace osc::check {

class Ledger;

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
        std::vector<Bytes> reads, writes;
        std::optional<std::uint64_t> hash;  // of the bytes that it reads; none if they were not mapped
        bool indexed = true;                // else the operation before, which completes with it, has the same buffers
    };
    using Index = PieceIndex<std::uint64_t>;  // by the numbers of operations

    const Pending* find(const Index& index, const std::vector<Bytes>& ranges) const;
    void look_for_overlaps(const Operation& operation) const;
    void look_for_change(const Pending& pending, const Synchronisation& call) const;

    const Ledger& ledger_;
    std::map<std::uint64_t, Pending> operations_;  // by number
    // What completes together: by target, and of an operation with a request by its number, else 0.
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<std::uint64_t>> groups_;
    Index reads_, writes_;
};

}  // namespace osc::check
