#include "base/abstract_name.h"

#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

#include "base/descriptor.h"

namespace osc::base {

int at_name(int (*call)(int, const sockaddr*, socklen_t), int socket, std::string_view name) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::size_t length = name.copy(address.sun_path + 1, sizeof address.sun_path - 1);  // behind a zero byte
    return call(socket, reinterpret_cast<const sockaddr*>(&address),
                static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length));
}

Claim claim_name(std::string_view name) {
    const int socket = above_stdio(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (socket < 0) return Claim::Failed;
    if (at_name(::bind, socket, name) == 0) return Claim::Mine;
    const bool taken = errno == EADDRINUSE;
    ::close(socket);
    return taken ? Claim::Taken : Claim::Failed;
}

}  // namespace osc::base
