// The connection beside the network under test (see raw_control.h).
#include "raw_control.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <stdexcept>

namespace bench {

namespace {

constexpr int kTries = 100;
constexpr timespec kBetweenTries{0, 100'000'000};

int listen_and_accept(int port) {
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_port = htons(static_cast<std::uint16_t>(port));
    if (bind(listener, reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0 || listen(listener, 1) != 0) {
        throw std::runtime_error("cannot listen on port " + std::to_string(port));
    }
    const int peer = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    close(listener);
    return peer;
}

int connect_to(const std::string& server, int port) {
    addrinfo hints{};
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (getaddrinfo(server.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
        throw std::runtime_error("no address of " + server);
    }
    int peer = -1;
    for (int i = 0; i < kTries && peer < 0; ++i) {
        peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(peer, found->ai_addr, found->ai_addrlen) == 0) break;
        close(peer);
        peer = -1;
        nanosleep(&kBetweenTries, nullptr);
    }
    freeaddrinfo(found);
    return peer;
}

}  // namespace

Control::Control(int rank, const std::string& server, int port) {
    socket_ = rank == 0 ? listen_and_accept(port) : connect_to(server, port);
    if (socket_ < 0) throw std::runtime_error("the other process cannot be reached");
    const int on = 1;
    setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Control::~Control() {
    close(socket_);
}

void Control::send(const void* data, std::size_t bytes) const {
    if (::send(socket_, data, bytes, MSG_NOSIGNAL) != static_cast<ssize_t>(bytes)) {
        throw std::runtime_error("the other process is gone");
    }
}

void Control::receive(void* data, std::size_t bytes) const {
    auto* at = static_cast<char*>(data);
    while (bytes > 0) {
        const ssize_t got = recv(socket_, at, bytes, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
            throw std::runtime_error("the other process is gone");
        }
        if (got < 0) {
            sched_yield();
            continue;
        }
        at += got;
        bytes -= static_cast<std::size_t>(got);
    }
}

std::uint64_t Control::swap(std::uint64_t mine) const {
    std::uint64_t other = 0;
    send(&mine, sizeof mine);
    receive(&other, sizeof other);
    return other;
}

bool Control::stopped() const {
    char byte = 0;
    // An end of the connection counts too: the receive that follows reports it.
    return recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0;
}

std::string Control::own_address() const {
    sockaddr_in mine{};
    socklen_t size = sizeof mine;
    getsockname(socket_, reinterpret_cast<sockaddr*>(&mine), &size);
    char text[NI_MAXHOST] = "";
    getnameinfo(reinterpret_cast<const sockaddr*>(&mine), size, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
    return text;
}

}  // namespace bench
