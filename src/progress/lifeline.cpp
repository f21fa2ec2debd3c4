// Plain sockets, without a byte of data.
#include "progress/lifeline.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

namespace osc::progress {
namespace {

int make_socket() {
    return ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

sockaddr_in at(const SocketAddress& place) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = place.address;
    address.sin_port = place.port;
    return address;
}

}  // namespace

Lifeline::~Lifeline() {
    if (socket_ >= 0) ::close(socket_);
}

SocketAddress Lifeline::open(std::uint32_t address) {
    sockaddr_in mine = at({address, 0, 0});
    socklen_t length = sizeof mine;
    socket_ = make_socket();
    if (socket_ < 0 || ::bind(socket_, reinterpret_cast<sockaddr*>(&mine), length) != 0 ||
        ::listen(socket_, SOMAXCONN) != 0 || ::getsockname(socket_, reinterpret_cast<sockaddr*>(&mine), &length) != 0)
        return {};
    return {mine.sin_addr.s_addr, mine.sin_port, 0};
}

void Lifeline::drain() const {
    if (socket_ < 0) return;
    for (int prober = 0; prober >= 0;) {
        prober = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (prober >= 0) ::close(prober);
    }
}

Reached reach(const SocketAddress& place, int milliseconds) {
    const int attempt = place.port != 0 ? make_socket() : -1;
    if (attempt < 0) return Reached::Nothing;
    const sockaddr_in there = at(place);
    int error = ::connect(attempt, reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0 ? 0 : errno;
    pollfd ready{attempt, POLLOUT, 0};
    if (error == EINPROGRESS && ::poll(&ready, 1, milliseconds) == 1) {
        socklen_t length = sizeof error;
        ::getsockopt(attempt, SOL_SOCKET, SO_ERROR, &error, &length);
    }
    ::close(attempt);
    return error == 0 ? Reached::Accepted : error == ECONNREFUSED ? Reached::Refused : Reached::Nothing;
}

Probe::~Probe() {
    end();
}

void Probe::end() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
}

bool Probe::gone(const SocketAddress& place) {
    if (place.port == 0) return false;
    if (socket_ < 0) {
        socket_ = make_socket();
        if (socket_ < 0) return false;
        const sockaddr_in there = at(place);
        if (::connect(socket_, reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0) {
            end();
            return false;
        }
        if (errno == EINPROGRESS) return false;
        const bool refused = errno == ECONNREFUSED;
        end();
        return refused;
    }
    pollfd ready{socket_, POLLOUT, 0};
    if (::poll(&ready, 1, 0) == 0) return false;
    int error = 0;
    socklen_t length = sizeof error;
    ::getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &length);
    end();
    return error == ECONNREFUSED;
}

}  // namespace osc::progress
