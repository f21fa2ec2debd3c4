// Claims of warnings.
#include "base/warn.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <set>
#include <string>

#include "base/descriptor.h"
#include "base/hash.h"
#include "base/launcher.h"
#include "base/log.h"

namespace osc::base {
namespace {

// Descriptors that claims may take; a process with more messages prints the others.
constexpr int kMostWarnings = 8;
constexpr int kMostFindings = 64;

enum class Finders { Job, Group };

// True if no other process of the node's part of the job has claimed the text. `claims` counts those of this process.
bool claim(std::uint64_t text, int& claims, int most) {
    const std::string mine = launcher::job_on_node();
    if (mine.empty() || claims >= most) return true;
    const int socket = above_stdio(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (socket < 0) return true;
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    // The first byte stays 0: a name in no file system.
    const int length = std::snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "libosc-%u-%016llx-%016llx",
                                     static_cast<unsigned>(::getuid()), static_cast<unsigned long long>(hash_of(mine)),
                                     static_cast<unsigned long long>(text));
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<std::size_t>(length));
    if (::bind(socket, reinterpret_cast<const sockaddr*>(&name), size) == 0) {
        ++claims;  // the socket stays open until the process ends
        return true;
    }
    const bool taken = errno == EADDRINUSE;
    ::close(socket);
    return !taken;
}

bool may_print(std::uint64_t text, Finders finders) {
    static std::mutex mutex;
    static int claims = 0;
    static auto& printed = *new std::set<std::uint64_t>;  // never freed: exit handlers may warn
    const std::lock_guard lock(mutex);
    if (!printed.insert(text).second) return false;
    const int rank = launcher::rank();
    if (rank < 0) return true;
    if (finders == Finders::Job && !launcher::is_on_one_node()) return rank == 0;
    return claim(text, claims, kMostWarnings);
}

void warn(Finders finders, const char* format, va_list arguments) {
    char text[900];
    std::vsnprintf(text, sizeof text, format, arguments);
    if (may_print(hash_of(text), finders)) say("%s", text);
}

}  // namespace

void warn_for_job(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    warn(Finders::Job, format, arguments);
    va_end(arguments);
}

void warn_for_group(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    warn(Finders::Group, format, arguments);
    va_end(arguments);
}

bool claim_for_job(std::uint64_t key) {
    static std::mutex mutex;
    static int claims = 0;
    const std::lock_guard lock(mutex);
    return launcher::rank() < 0 || claim(key, claims, kMostFindings);
}

}  // namespace osc::base
