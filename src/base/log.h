// libosc's messages on stderr: one line each, with the rank if it is known.
#pragma once

namespace osc::base {

/// Sets this process's rank among `processes`. Later lines have the rank in the largest communicator with a window,
/// which is usually the one that the user knows. Not thread-safe.
void set_rank(int rank, int processes);

/// Prints "libosc: rank R: ..." as one write, so that the lines of several ranks do not mix. Thread-safe.
void say(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace osc::base
