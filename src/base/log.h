// libosc's messages on stderr: each one write, with the rank if it is known.
#pragma once

#include <string>

namespace osc::base {

/// Sets this process's rank among `processes`. Later lines have the rank in the largest communicator with a window,
/// which is usually the one that the user knows. Not thread-safe.
void set_rank(int rank, int processes);

/// Prints "libosc: rank R: ..." as one write, so that the lines of several ranks do not mix. Thread-safe.
void say(const char* format, ...) __attribute__((format(printf, 1, 2)));

/// The same for a text of any length, which may have several lines. Thread-safe.
void say_text(const std::string& text);

}  // namespace osc::base
