// What libosc says on stderr: one line per message, with the rank where it is known.
#pragma once

namespace osc::diag {

/// Tells this process's rank among `processes`: later lines carry the one in the largest communicator that had a
/// window, by which its user knows it. Not thread-safe.
void set_rank(int rank, int processes);

/// Prints "libosc: rank R: ..." as one write, so that the lines of several ranks do not mix. Thread-safe.
void say(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace osc::diag
