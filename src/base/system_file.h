// The text files of /proc and /sys: a line by its key, and its number.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace osc::base {

/// What follows `key` in the first line of the file that begins with it; "" if there is none. Thread-safe.
inline std::string line_of(const std::string& path, std::string_view key = {}) {
    std::FILE* const file = std::fopen(path.c_str(), "re");
    char line[512];
    std::string found;
    while (file != nullptr && std::fgets(line, sizeof line, file) != nullptr)
        if (const std::string_view text(line); text.starts_with(key)) {
            found = text.substr(key.size(), text.find('\n') - key.size());
            break;
        }
    if (file != nullptr) std::fclose(file);
    return found;
}

/// The number at the start of that text; `otherwise` if there is none.
inline unsigned long long number_of(const std::string& path, std::string_view key, unsigned long long otherwise) {
    unsigned long long value = 0;
    return std::sscanf(line_of(path, key).c_str(), "%llu", &value) == 1 ? value : otherwise;
}

}  // namespace osc::base
