// Writes JSON (RFC 8259). A key or value outside an object or array is the caller's error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace osc::stats {

class Json {
  public:
    Json& begin_object() { return open('{'); }
    Json& end_object() { return close('}'); }
    Json& begin_array() { return open('['); }
    Json& end_array() { return close(']'); }
    Json& key(std::string_view name);
    Json& value(std::uint64_t number);
    Json& seconds(std::uint64_t nanoseconds);
    Json& value(std::string_view text);
    /// The text so far.
    const std::string& text() const { return text_; }

  private:
    Json& open(char bracket);
    Json& close(char bracket);
    void separate();
    void quote(std::string_view text);
    std::string text_;
    std::size_t depth_ = 0;
    bool first_ = true;  // no element in the innermost object or array yet
    bool after_key_ = false;
};

}  // namespace osc::stats
