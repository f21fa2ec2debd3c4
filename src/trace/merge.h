// Merges the files of a job's processes into one timeline in the Chrome trace event format, which Perfetto and
// chrome://tracing read. A process is a process of the timeline, named by its rank; its threads are threads. Calls,
// waits and messages are slices, messages have arrows, and epochs are tracks of their own.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace osc::trace {

/// What a merge found.
struct Merged {
    std::uint32_t processes = 0;        // of the job, by its own account
    std::uint32_t found = 0;            // whose files were merged
    std::uint64_t records = 0;          // in them
    std::uint64_t dropped = 0;          // that did not fit them
    std::uint64_t arrows = 0;           // messages with both ends
    std::vector<std::string> left_out;  // files beside `path` that do not belong to the job, with the reason
};

/// The ranks that have a file beside `path` ("path.rank-N"), ascending.
std::vector<std::uint32_t> ranks_beside(const std::string& path);

/// Reads the files beside `path` and writes `path`. False with a reason in `why` if there is none, or `path` cannot be
/// written. Where the files are of several runs, the run of the newest file counts. Needs memory for the
/// messages and calls of one process at a time, and 48 bytes for each message.
bool merge(const std::string& path, Merged& merged, std::string& why);

}  // namespace osc::trace
