// Warnings: lines on stderr that a job prints once, not once per rank and not once per window. Decided without
// communication, which could hang:
//
// - A process prints each text once.
// - Of the processes of one node, only the one that claims the text prints it. A claim is an abstract socket whose name
//   has the user, the launcher's job and the text; the kernel grants it to one process and frees it with that process.
// - A warning that every process of the job has (a misspelt variable) is printed by the launcher's rank 0 alone if the
//   job has several nodes, because the launcher gives all processes the same environment. So a variable that only
//   processes of another node have is not reported; `osc_info --check` under the launcher reports those too.
// - Without a launcher, or where a job or a socket is not to be had, the process prints. A line twice is better than
//   none.
#pragma once

#include <cstdint>

namespace osc::base {

/// A warning that every process of the job finds by itself. Thread-safe.
void warn_for_job(const char* format, ...) __attribute__((format(printf, 1, 2)));

/// A warning about a fact that a group of processes agrees on; one of them calls. Thread-safe.
void warn_for_group(const char* format, ...) __attribute__((format(printf, 1, 2)));

/// Whether no other process of the job on this node has claimed `key`; true also if that cannot be known, and from the
/// 64th claim of this process on. For messages of the usage checker; warnings are claimed by their text. The same
/// process may claim a key once only. Thread-safe.
bool claim_for_job(std::uint64_t key);

}  // namespace osc::base
