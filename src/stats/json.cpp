// Brackets, commas, and strings: control characters are escaped, and bytes that are not UTF-8 are replaced.
#include "stats/json.h"

#include <cstdio>

namespace osc::stats {
namespace {

// The length of the UTF-8 sequence at the start of `text`; 0 if there is none (RFC 3629: no surrogates, no overlong
// forms, nothing above U+10FFFF).
std::size_t sequence(std::string_view text) {
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
    const unsigned char lead = byte(0);
    const std::size_t length = lead < 0x80                   ? 1
                               : lead >= 0xc2 && lead < 0xe0 ? 2
                               : lead >= 0xe0 && lead < 0xf0 ? 3
                               : lead >= 0xf0 && lead < 0xf5 ? 4
                                                             : 0;
    if (length == 0 || length > text.size()) return 0;
    for (std::size_t at = 1; at < length; ++at)
        if ((byte(at) & 0xc0) != 0x80) return 0;
    if (length > 1 && ((lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xed && byte(1) >= 0xa0) ||
                       (lead == 0xf0 && byte(1) < 0x90) || (lead == 0xf4 && byte(1) >= 0x90)))
        return 0;
    return length;
}

}  // namespace

void Json::separate() {
    if (after_key_) {
        after_key_ = false;
        return;
    }
    if (!first_) text_ += ',';
    first_ = false;
    if (depth_ > 0) text_.append("\n").append(2 * depth_, ' ');
}

Json& Json::open(char bracket) {
    separate();
    text_ += bracket;
    ++depth_;
    first_ = true;
    return *this;
}

Json& Json::close(char bracket) {
    --depth_;
    if (!first_) text_.append("\n").append(2 * depth_, ' ');
    text_ += bracket;
    first_ = false;
    return *this;
}

Json& Json::key(std::string_view name) {
    separate();
    quote(name);
    text_ += ": ";
    after_key_ = true;
    return *this;
}

Json& Json::value(std::uint64_t number) {
    separate();
    text_ += std::to_string(number);
    return *this;
}

// Without printf's %f, whose decimal point follows the program's locale.
Json& Json::seconds(std::uint64_t nanoseconds) {
    constexpr std::uint64_t kSecond = 1000000000;
    const std::string fraction = std::to_string(kSecond + nanoseconds % kSecond).substr(1);
    separate();
    text_ += std::to_string(nanoseconds / kSecond) + '.' + fraction;
    return *this;
}

Json& Json::value(std::string_view text) {
    separate();
    quote(text);
    return *this;
}

void Json::quote(std::string_view text) {
    text_ += '"';
    while (!text.empty()) {
        const std::size_t length = sequence(text);
        const char first = text.front();
        if (length == 0) {
            text_ += "\\ufffd";
        } else if (static_cast<unsigned char>(first) < 0x20 || first == 0x7f) {
            char escaped[8];
            std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(first));
            text_ += escaped;
        } else {
            if (first == '"' || first == '\\') text_ += '\\';
            text_ += text.substr(0, length);
        }
        text.remove_prefix(length == 0 ? 1 : length);
    }
    text_ += '"';
}

}  // namespace osc::stats
