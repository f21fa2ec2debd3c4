// The statistics of this process: one record for each window, kept after the window's free until MPI_Finalize.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "stats/counters.h"

namespace osc::stats {

namespace detail {
inline constinit bool g_on = false;
}
/// Whether there are statistics. Constant from the first call of the program on.
inline bool enabled() {
    return detail::g_on;
}
/// OSC_STATS asks for them, and the plugin that reports them is loaded. Before the first call of the program.
void turn_on();

/// The process that a wait is for, by its rank in the window; or no single one; or further ones, after those that a
/// table has room for.
inline constexpr std::uint32_t kNoPeer = ~std::uint32_t{0};
inline constexpr std::uint32_t kFurtherPeers = kNoPeer - 1;

/// How long the process has waited for one thing of one peer.
struct Waited {
    Wait what = Wait::Other;
    std::uint32_t peer = kNoPeer;
    std::uint64_t ns = 0;
};

/// What a process has waited for in one window. Its size is fixed, because a wait may end where memory is short, and
/// must not grow with the processes.
class WaitTable {
  public:
    static constexpr std::size_t kPeers = 256;
    void add(Wait what, std::uint32_t peer, std::uint64_t ns);
    /// The longest `most`, longest first; then the sum of the others for each kind of wait, with kFurtherPeers.
    std::vector<Waited> longest(std::size_t most) const;

  private:
    std::array<Waited, kPeers> entries_{};  // by a hash of kind and peer; an entry without time is free
    std::array<std::uint64_t, static_cast<std::size_t>(Wait::Count)> further_{};
};

/// A window's record. The strings change under the registry's lock, in describe() only.
struct Record : Counters {
    using Counters::Counters;
    std::uint64_t id = 0;           // the same on all processes of the window; see Team::window_id
    std::uint32_t rank = 0;         // of this process in the window
    std::uint32_t processes = 0;    // of the window; 0 until the first describe()
    std::int64_t created = 0;       // now_ns()
    std::string made_by;            // "MPI_Win_allocate", ...
    std::string name;               // MPI_Win_set_name, at the last describe()
    std::string fence, pscw, lock;  // strategies, with the reason
    WaitTable waits;                // changes under the registry's lock
};

/// The most windows of a process that have a record each. Later ones share the record of id kFurther.
inline constexpr std::size_t kMostRecords = 1000;
inline constexpr std::uint64_t kHostServed = 0;  // id of the record of all windows that the host serves
inline constexpr std::uint64_t kFurther = 1;

/// The record of a window that is being created; it counts from its first describe() on. Thread-safe, as all functions
/// here.
Record& open(std::uint64_t id, std::uint32_t rank, const char* made_by, bool threaded);
/// The record of the windows that the host serves.
Record& host_served();
/// Adds a wait to the window's record, if it has one.
void add_wait(std::uint64_t id, Wait what, std::uint32_t peer, std::int64_t ns);
/// Changes the strings of a record, and ends its lifetime.
void describe(Record& record, base::FunctionRef<void(Record&)> change);
/// Calls visit(record) for all records in the order of their creation; the shared ones only if they have counted.
void visit(base::FunctionRef<void(const Record&)> visit);

}  // namespace osc::stats
