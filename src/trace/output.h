// Writes a file of trace events, one a line, or of plain text, through a buffer.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace osc::trace {

using Json = nlohmann::ordered_json;

/// The value in one line; bytes of texts that are not UTF-8 become U+FFFD.
std::string text_of(const Json& value);

class Output {
  public:
    Output() = default;
    ~Output();
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;

    /// False with errno.
    bool open(const std::string& path);
    /// Writes the rest. False with errno if that or an earlier write failed.
    bool close();

    /// An element of the list of events.
    void event(const Json& event);
    /// Text as it is.
    Output& raw(std::string_view text);
    void flush();

  private:
    std::string buffer_;
    int file_ = -1;
    int error_ = 0;
    bool first_event_ = true;
};

}  // namespace osc::trace
