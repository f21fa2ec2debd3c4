// Formats events.
#include "trace/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/descriptor.h"

namespace osc::trace {
namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 20;

}  // namespace

Output::~Output() {
    if (file_ >= 0) ::close(file_);
}

bool Output::open(const std::string& path) {
    file_ = base::above_stdio(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    return file_ >= 0;
}

void Output::flush() {
    if (error_ == 0 && !base::write_all(file_, buffer_)) error_ = errno;
    buffer_.clear();
}

bool Output::close() {
    flush();
    if (::close(file_) != 0 && error_ == 0) error_ = errno;
    file_ = -1;
    errno = error_;
    return error_ == 0;
}

Output& Output::raw(std::string_view text) {
    buffer_.append(text);
    return *this;
}

Output& Output::quoted(std::string_view text) {
    return raw(nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

void Output::key(std::string_view name) {
    if (!first_field_) buffer_ += ',';
    first_field_ = false;
    buffer_.append(1, '"').append(name).append("\":");
}

Output& Output::event(char phase, std::string_view name, std::string_view category) {
    if (buffer_.size() >= kBuffer) flush();
    buffer_.append(first_event_ ? "\n{\"ph\":\"" : ",\n{\"ph\":\"").append(1, phase).append("\"");
    first_event_ = false;
    first_field_ = false;
    field("name", name);
    return category.empty() ? *this : field("cat", category);
}

Output& Output::field(std::string_view name, std::uint64_t number) {
    key(name);
    return raw(std::to_string(number));
}

Output& Output::field(std::string_view name, std::string_view text) {
    key(name);
    return quoted(text);
}

Output& Output::time(std::string_view name, std::int64_t ns) {
    key(name);
    const bool negative = ns < 0;
    const auto size = static_cast<std::uint64_t>(negative ? -ns : ns);
    const std::string fraction = std::to_string(1000 + size % 1000).substr(1);
    return raw(negative ? "-" : "").raw(std::to_string(size / 1000)).raw(".").raw(fraction);
}

Output& Output::begin(std::string_view name) {
    key(name);
    first_field_ = true;
    return raw("{");
}

Output& Output::end() {
    first_field_ = false;
    return raw("}");
}

}  // namespace osc::trace
