// What libosc says on stderr: one line per message, with the rank where it is known.
#pragma once

namespace osc::diag {

/// Sets the rank that later lines carry (the rank in the parent of the first window). Not thread-safe.
void set_rank(int rank);

/// Prints "libosc: rank R: ..." as one write, so that the lines of several ranks do not mix. Thread-safe.
void say(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace osc::diag
