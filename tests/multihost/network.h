// Changes the network below the hosts from a program that runs on one of them (LINK=tap; the commands are in
// forwarder.cpp). The forwarder listens in every host's network namespace, so there is no path to hand around, and none
// to leave behind.
#pragma once

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <string>

namespace multihost {

constexpr std::size_t kMessageBytes = 4096;

/// The forwarder's address: a name without a path, which is of the network namespace that it is used in.
inline socklen_t control_address(sockaddr_un& address) {
    constexpr char name[] = "osc-network";
    address = {};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name, sizeof(name) - 1);
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + sizeof(name));
}

/// Sends one command; it is in force when this returns. The answer is "ok", text that was asked for, or "error: ...".
inline std::string ask_network(const std::string& command) {
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0) return "error: no socket";
    sockaddr_un address;
    const socklen_t length = control_address(address);
    const timeval patience{10, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    std::string answer = "error: no forwarder below this host (LINK=tap)";
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), length) == 0) {
        char text[kMessageBytes];
        ssize_t got = -1;
        if (send(fd, command.data(), command.size(), MSG_NOSIGNAL) >= 0) got = recv(fd, text, sizeof(text), 0);
        answer = got > 0 ? std::string(text, static_cast<std::size_t>(got)) : "error: no answer";
    }
    close(fd);
    return answer;
}

}  // namespace multihost
