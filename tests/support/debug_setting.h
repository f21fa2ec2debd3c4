// What a test program reads of OSC_DEBUG=key=value,...
#pragma once

#include <cstdlib>
#include <string>

namespace osct {

/// The value of a key of OSC_DEBUG; "" without it.
inline std::string debug_setting(const std::string& key) {
    const char* const text = std::getenv("OSC_DEBUG");
    const std::string all = std::string(",") + (text != nullptr ? text : "") + ",";
    const std::size_t at = all.find("," + key + "=");
    if (at == std::string::npos) return "";
    const std::size_t begin = at + key.size() + 2;
    return all.substr(begin, all.find(',', begin) - begin);
}

}  // namespace osct
