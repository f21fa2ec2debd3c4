// The statistics of this process: one record for each window, kept after the window's free until MPI_Finalize.
#pragma once

#include <cstdint>
#include <string>

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
/// Changes the strings of a record, and ends its lifetime.
void describe(Record& record, base::FunctionRef<void(Record&)> change);
/// Calls visit(record) for all records in the order of their creation; the shared ones only if they have counted.
void visit(base::FunctionRef<void(const Record&)> visit);

}  // namespace osc::stats
