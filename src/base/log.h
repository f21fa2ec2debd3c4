// libosc's messages on stderr, each one write, with the rank if it is known; and the texts in them.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <span>
#include <string>

namespace osc::base {

/// A text of at most 399 characters.
[[gnu::format(printf, 1, 2)]] inline std::string format(const char* text, ...) {
    char line[400];
    va_list arguments;
    va_start(arguments, text);
    std::vsnprintf(line, sizeof line, text, arguments);
    va_end(arguments);
    return line;
}

/// Sets this process's rank among `processes`. Later lines have the rank in the largest communicator with a window,
/// which is usually the one that the user knows. Not thread-safe.
void set_rank(int rank, int processes);

/// Prints "libosc: rank R: ..." as one write, so that the lines of several ranks do not mix. Thread-safe.
void say(const char* format, ...) __attribute__((format(printf, 1, 2)));

/// The same for a text of any length, which may have several lines. Thread-safe.
void say_text(const std::string& text);

/// "rank 1", "ranks 0, 2-3". `ranks` ascend.
std::string text_of_ranks(std::span<const int> ranks);

}  // namespace osc::base
