// One line, one write(2): ranks share the launcher's stderr.
#include "base/log.h"

#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace osc::base {
namespace {
int g_rank = -1;
int g_processes = 0;  // the size of that communicator
}  // namespace

void set_rank(int rank, int processes) {
    if (processes <= g_processes) return;
    g_rank = rank;
    g_processes = processes;
}

void say(const char* format, ...) {
    char line[1024];
    int used = g_rank >= 0 ? std::snprintf(line, sizeof line, "libosc: rank %d: ", g_rank)
                           : std::snprintf(line, sizeof line, "libosc: ");
    va_list args;
    va_start(args, format);
    const int more = std::vsnprintf(line + used, sizeof line - static_cast<std::size_t>(used) - 1, format, args);
    va_end(args);
    used = std::min(used + std::max(more, 0), static_cast<int>(sizeof line) - 2);
    line[used++] = '\n';
    if (::write(STDERR_FILENO, line, static_cast<std::size_t>(used)) < 0) return;
}

void say_text(const std::string& text) {
    const std::string line =
        (g_rank >= 0 ? "libosc: rank " + std::to_string(g_rank) + ": " : std::string("libosc: ")) + text + "\n";
    if (::write(STDERR_FILENO, line.data(), line.size()) < 0) return;
}

std::string text_of_ranks(std::span<const int> ranks) {
    std::string text = ranks.size() == 1 ? "rank " : "ranks ";
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        std::size_t last = i;
        while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1)
            ++last;
        text.append(i > 0 ? ", " : "").append(std::to_string(ranks[i]));
        if (last > i) text.append("-").append(std::to_string(ranks[last]));
        i = last;
    }
    return text;
}

}  // namespace osc::base
