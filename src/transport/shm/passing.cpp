// The sockets, and what travels over them: the token of the arena that is wanted, and back the same token with the
// descriptor.
#include "transport/shm/passing.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>

namespace osc::shm {
namespace {

// After so long a caller that says nothing makes room for others. Who was only slow asks again.
constexpr std::chrono::milliseconds kSilence{200};

struct Name {
    sockaddr_un address{};
    socklen_t length = 0;
};

Name name_of(std::uint64_t number) {
    Name name;
    name.address.sun_family = AF_UNIX;
    char* text = name.address.sun_path + 1;  // the leading zero makes it abstract
    const int length =
        std::snprintf(text, sizeof name.address.sun_path - 1, "osc-%016llx", static_cast<unsigned long long>(number));
    name.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<std::size_t>(length));
    return name;
}

int make_socket() {
    return ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

void close_and_forget(int& descriptor) {
    if (descriptor >= 0) ::close(descriptor);
    descriptor = -1;
}

bool later() {
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

union Control {
    cmsghdr header;
    char room[CMSG_SPACE(sizeof(int))];
};

void send_descriptor(int to, std::uint64_t token, int descriptor) {
    iovec data{&token, sizeof token};
    Control control{};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = &control;
    message.msg_controllen = sizeof control.room;
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(part), &descriptor, sizeof descriptor);
    // Who gets no answer, because the system has too many descriptors under way, asks again.
    if (::sendmsg(to, &message, MSG_NOSIGNAL) < 0) return;
}

// The bytes received, as recvmsg; `descriptor` is -1 if none came or this process had no room for it.
ssize_t receive_descriptor(int from, std::uint64_t& token, int& descriptor) {
    iovec data{&token, sizeof token};
    Control control{};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = &control;
    message.msg_controllen = sizeof control.room;
    descriptor = -1;
    const ssize_t got = ::recvmsg(from, &message, MSG_CMSG_CLOEXEC);
    if (got < 0) return got;
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part))
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS &&
            part->cmsg_len == CMSG_LEN(sizeof descriptor))
            std::memcpy(&descriptor, CMSG_DATA(part), sizeof descriptor);
    return got;
}

// The number of the process at the other end in this one's PID namespace; 0 if it has none here.
pid_t number_here(int connection) {
    ucred who{};
    socklen_t length = sizeof who;
    return ::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0 ? who.pid : 0;
}

}  // namespace

Passing::Passing(std::uint64_t number) {
    if (!Arena::mine().show_life()) return;
    const Name name = name_of(number);
    listener_ = make_socket();
    if (listener_ < 0) return;
    if (::bind(listener_, reinterpret_cast<const sockaddr*>(&name.address), name.length) != 0 ||
        ::listen(listener_, SOMAXCONN) != 0)
        close_and_forget(listener_);
}

Passing::~Passing() {
    abandon();
    close_and_forget(caller_);
    close_and_forget(listener_);
}

void Passing::abandon() {
    close_and_forget(asked_);
}

void Passing::serve() {
    for (int answered = 0; answered < 8; ++answered) {
        if (caller_ < 0) {
            caller_ = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
            if (caller_ < 0) return;
            came_ = std::chrono::steady_clock::now();
        }
        std::uint64_t wanted = 0;
        const ssize_t got = ::recv(caller_, &wanted, sizeof wanted, 0);
        if (got < 0 && later() && std::chrono::steady_clock::now() - came_ < kSilence) return;
        if (got == static_cast<ssize_t>(sizeof wanted)) {
            const ArenaAddress mine = Arena::mine().address();
            if (wanted == mine.token) send_descriptor(caller_, mine.token, mine.fd);
        }
        close_and_forget(caller_);
    }
}

Fetched Passing::fetch(std::uint64_t number, PeerArena& peer) {
    const std::uint64_t token = peer.address().token;
    if (asked_ < 0) {
        const Name name = name_of(number);
        asked_ = make_socket();
        if (asked_ < 0) return Fetched::Never;
        if (::connect(asked_, reinterpret_cast<const sockaddr*>(&name.address), name.length) != 0) {
            const bool full = later();
            close_and_forget(asked_);
            return full ? Fetched::NotYet : Fetched::Never;
        }
        if (::send(asked_, &token, sizeof token, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof token)) {
            close_and_forget(asked_);
            return Fetched::NotYet;
        }
    }
    std::uint64_t answer = 0;
    int descriptor = -1;
    const ssize_t got = receive_descriptor(asked_, answer, descriptor);
    if (got < 0 && later()) return Fetched::NotYet;
    const pid_t pid = number_here(asked_);
    close_and_forget(asked_);
    if (descriptor < 0) return got == static_cast<ssize_t>(sizeof answer) ? Fetched::Never : Fetched::NotYet;
    return peer.adopt(descriptor, pid) ? Fetched::Yes : Fetched::Never;
}

bool arena_owner_lives(int descriptor) {
    struct flock life = {};
    life.l_type = F_WRLCK;
    life.l_whence = SEEK_SET;
    life.l_len = 1;
    return ::fcntl(descriptor, F_GETLK, &life) != 0 || life.l_type != F_UNLCK;
}

}  // namespace osc::shm
