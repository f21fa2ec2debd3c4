// The sockets and their messages: a request is the token of the wanted arena, the reply the same token with the
// descriptor.
#include "shm/fd_exchange.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/abstract_name.h"
#include "base/descriptor.h"
#include "base/log.h"

namespace osc::shm {
namespace {

// A client that sends nothing for so long is disconnected, so that others are served. A slow client connects again.
constexpr std::chrono::milliseconds kSilence{200};

std::string name_of(std::uint64_t number) {
    return base::format("osc-%016llx", static_cast<unsigned long long>(number));
}

int make_socket() {
    return base::above_stdio(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

void close_and_forget(int& descriptor) {
    if (descriptor >= 0) ::close(descriptor);
    descriptor = -1;
}

bool would_block() {
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

// A message of a token, with room for one descriptor. It refers to itself and to the token.
struct TokenMessage {
    explicit TokenMessage(std::uint64_t& token) : data{&token, sizeof token} {
        message.msg_iov = &data;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = sizeof control;
    }
    TokenMessage(const TokenMessage&) = delete;
    TokenMessage& operator=(const TokenMessage&) = delete;

    iovec data;
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
    msghdr message{};
};

void send_descriptor(int to, std::uint64_t token, int descriptor) {
    TokenMessage sent(token);
    cmsghdr* part = CMSG_FIRSTHDR(&sent.message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof descriptor);
    std::memcpy(CMSG_DATA(part), &descriptor, sizeof descriptor);
    // On failure, for example because too many descriptors are in flight, the client asks again.
    if (::sendmsg(to, &sent.message, MSG_NOSIGNAL) < 0) return;
}

// The result of recvmsg; `descriptor` is -1 if the message had none, or this process cannot open another one.
ssize_t receive_descriptor(int from, std::uint64_t& token, int& descriptor) {
    TokenMessage received(token);
    descriptor = -1;
    const ssize_t got = ::recvmsg(from, &received.message, MSG_CMSG_CLOEXEC);
    if (got < 0) return got;
    for (cmsghdr* part = CMSG_FIRSTHDR(&received.message); part != nullptr; part = CMSG_NXTHDR(&received.message, part))
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS &&
            part->cmsg_len == CMSG_LEN(sizeof descriptor))
            std::memcpy(&descriptor, CMSG_DATA(part), sizeof descriptor);
    descriptor = base::above_stdio(descriptor);
    return got;
}

// The process at the other end as this one's namespaces number it and its user; the number is 0 if it has none.
ucred owner_of(int connection) {
    ucred peer{};
    socklen_t length = sizeof peer;
    if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return {0, static_cast<uid_t>(-1), 0};
    return peer;
}

}  // namespace

FdExchange::FdExchange(std::uint64_t number) {
    if (!Arena::mine().show_life()) return;
    listener_ = make_socket();
    if (listener_ < 0) return;
    if (base::at_name(::bind, listener_, name_of(number)) != 0 || ::listen(listener_, SOMAXCONN) != 0)
        close_and_forget(listener_);
}

FdExchange::~FdExchange() {
    abandon();
    close_and_forget(client_);
    close_and_forget(listener_);
}

void FdExchange::abandon() {
    close_and_forget(fetching_);
}

void FdExchange::serve() {
    for (int answered = 0; answered < 8; ++answered) {
        if (client_ < 0) {
            client_ = base::above_stdio(::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
            if (client_ < 0) return;
            accepted_at_ = std::chrono::steady_clock::now();
        }
        std::uint64_t wanted = 0;
        const ssize_t got = ::recv(client_, &wanted, sizeof wanted, 0);
        if (got < 0 && would_block() && std::chrono::steady_clock::now() - accepted_at_ < kSilence) return;
        if (got == static_cast<ssize_t>(sizeof wanted)) {
            const ArenaAddress mine = Arena::mine().address();
            if (wanted == mine.token) send_descriptor(client_, mine.token, mine.fd);
        }
        close_and_forget(client_);
    }
}

Fetched FdExchange::fetch(std::uint64_t number, PeerArena& peer) {
    const std::uint64_t token = peer.address().token;
    if (fetching_ < 0) {
        fetching_ = make_socket();
        if (fetching_ < 0) return Fetched::Never;
        if (base::at_name(::connect, fetching_, name_of(number)) != 0) {
            const bool full = would_block();
            close_and_forget(fetching_);
            return full ? Fetched::NotYet : Fetched::Never;
        }
        // Every process sees the name, and may bind it when its owner is gone. Its user alone gets the token.
        if (owner_of(fetching_).uid != ::geteuid()) {
            close_and_forget(fetching_);
            return Fetched::Never;
        }
        if (::send(fetching_, &token, sizeof token, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof token)) {
            close_and_forget(fetching_);
            return Fetched::NotYet;
        }
    }
    std::uint64_t answer = 0;
    int descriptor = -1;
    const ssize_t got = receive_descriptor(fetching_, answer, descriptor);
    if (got < 0 && would_block()) return Fetched::NotYet;
    const pid_t pid = owner_of(fetching_).pid;
    close_and_forget(fetching_);
    if (descriptor < 0) return got == static_cast<ssize_t>(sizeof answer) ? Fetched::Never : Fetched::NotYet;
    return peer.adopt(descriptor, pid) ? Fetched::Yes : Fetched::Never;
}

bool arena_owner_lives(int descriptor) {
    struct flock life = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 1, .l_pid = 0};
    return ::fcntl(descriptor, F_GETLK, &life) != 0 || life.l_type != F_UNLCK;
}

}  // namespace osc::shm
