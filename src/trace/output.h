// Writes a file of trace events, one a line, or of plain text, through a buffer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace osc::trace {

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

    /// Begins an event: {"ph":"X"... `phase` and `category` need no escapes. Fields follow, then end().
    Output& event(char phase, std::string_view name, std::string_view category = {});
    Output& field(std::string_view key, std::uint64_t number);
    Output& field(std::string_view key, std::string_view text);
    /// A time or a length, given in ns.
    Output& time(std::string_view key, std::int64_t ns);
    Output& begin(std::string_view key);  // an object inside the event
    Output& end();                        // of that object, or of the event

    /// Text as it is.
    Output& raw(std::string_view text);
    /// A string with its escapes; bytes that are not UTF-8 become U+FFFD.
    Output& quoted(std::string_view text);
    void flush();

  private:
    void key(std::string_view name);

    std::string buffer_;
    int file_ = -1;
    int error_ = 0;
    bool first_event_ = true;
    bool first_field_ = true;
};

}  // namespace osc::trace
