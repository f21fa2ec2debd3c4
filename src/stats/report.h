// The statistics of a job: the records of all its processes, matched by window. A process encodes its records;
// the first one decodes and adds up what it gets from all of them. The table, the JSON and the advice read a Report.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "stats/record.h"

namespace osc::stats {

/// What one process counted of one window.
struct Member {
    std::uint32_t rank = 0;                                       // in the window
    std::uint32_t world_rank = 0;                                 // in MPI_COMM_WORLD
    std::vector<std::pair<std::uint32_t, std::uint64_t>> values;  // index and value, ascending; no zeros
    std::vector<Waited> waits;                                    // WaitTable::longest()

    std::uint64_t value(std::size_t index) const;
    /// Sums over a range of indices. `field` of every `step` values.
    std::uint64_t sum(std::size_t first, std::size_t last, std::size_t step, std::size_t field) const;
    std::uint64_t operations() const { return sum(0, kFirstTime, kOperationFields, kOperations); }
    std::uint64_t bytes() const { return sum(0, kFirstTime, kOperationFields, kBytes); }
    /// ns of its operations, or what of them it waited.
    std::uint64_t of_operations(TimeField field) const { return sum(kFirstTime, kFirstSync, kTimeFields, field); }
    std::uint64_t waiting(Sync sync) const { return value(index_of(sync, kWaiting)); }
};

/// A window of the job.
struct WindowReport {
    std::uint64_t id = 0;
    std::uint32_t processes = 0;
    // Of the process with the lowest rank in the window.
    std::string name, made_by, fence, pscw, lock;
    std::vector<Member> members;  // by rank

    std::uint64_t value(std::size_t index) const;
    std::uint64_t value(Sync sync, SyncField field) const { return value(index_of(sync, field)); }
    std::uint64_t value(Other other) const { return value(index_of(other)); }
    std::uint64_t operations() const;
    std::uint64_t bytes() const;
    std::uint64_t of_kind(Kind kind, OperationField field = kOperations) const;
    std::uint64_t of_path(DataPath path, OperationField field = kOperations) const;
    std::uint64_t of(Kind kind, DataPath path, OperationField field = kOperations) const;
    std::uint64_t of(Kind kind, DataPath path, TimeField field) const { return value(index_of(kind, path, field)); }
    /// ns that operations waited for a lock, a post, a fence or another process.
    std::uint64_t operations_waiting() const;
    /// How a reader knows the window: its name, or how and as which it was made.
    std::string title() const;

    std::size_t number = 0;  // position in the report, from 1
};

struct Report {
    std::uint32_t processes = 0;        // of the job
    std::uint32_t reporting = 0;        // processes whose statistics are in it
    std::vector<std::uint64_t> totals;  // sums over the processes, as encode() got them
    std::vector<WindowReport> windows;  // by their creation
};

/// The records of this process and `totals`, as CBOR in whole words.
std::vector<std::uint8_t> encode(std::span<const std::uint64_t> totals);

/// Adds what `world_rank` encoded; counts it alone if the bytes are cut. Call it in ascending order of ranks.
void add(Report& report, std::uint32_t world_rank, std::span<const std::uint8_t> bytes);
/// Puts members and numbers in order, after the last add().
void finish(Report& report);

/// A finding and what to do about it.
struct Finding {
    std::string window;  // WindowReport::title()
    std::string text;
    std::string remedy;
};
/// What the figures say against the program. Counts decide; time does for waits only.
std::vector<Finding> advise(const Report& report);

/// The table for stderr, each line with "libosc: ". `names`: of Report::totals.
std::string table_of(const Report& report, std::span<const Finding> findings, std::span<const char* const> names);
std::string json_of(const Report& report, std::span<const Finding> findings, std::span<const char* const> names);

/// The statistic `name` of a window of this process, see osc_window_stat(). False for an unknown name.
bool look_up(const Counters& counters, const char* name, std::uint64_t& value);

const char* name_of(Kind kind);
const char* name_of(DataPath path);
const char* name_of(Sync sync);
const char* name_of(Wait wait);
/// "to_512", or "more" for the last one.
std::string name_of_size(std::size_t size);

}  // namespace osc::stats
