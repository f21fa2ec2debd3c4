#include "trace/output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/descriptor.h"

namespace osc::trace {

constexpr std::size_t kBuffer = std::size_t{1} << 20;

std::string text_of(const Json& value) {
    return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Output::~Output() {
    if (file_ >= 0) ::close(file_);
}

// In a folder that all users write to, a link of another user could name any file of this one.
bool Output::open(const std::string& path) {
    struct stat link {};
    const bool is_link = ::lstat(path.c_str(), &link) == 0 && S_ISLNK(link.st_mode);
    const bool trusted = is_link && (link.st_uid == ::geteuid() || link.st_uid == 0);
    const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | (trusted ? 0 : O_NOFOLLOW);
    file_ = base::above_stdio(::open(path.c_str(), flags, 0666));
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

void Output::event(const Json& event) {
    if (buffer_.size() >= kBuffer) flush();
    raw(first_event_ ? "\n" : ",\n").raw(text_of(event));
    first_event_ = false;
}

}  // namespace osc::trace
