// The lifeline over sockets, and the closing of sockets in children made by fork.
// Build: osc_core_cold
#include "progress/lifeline.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <mutex>

#include "base/clock.h"
#include "base/descriptor.h"

namespace osc::progress {
namespace {

// A port at which no process of a job listens. Whether a host accepts or refuses a connection to it, the host lives.
constexpr std::uint16_t kOtherPort = 1;

// The descriptors of all Sockets. A fork waits for the mutex, so the child knows every descriptor that it inherits.
struct Descriptors {
    std::mutex mutex;
    std::vector<int> open;
};

Descriptors& descriptors() {
    static auto* all = [] {
        ::pthread_atfork([] { descriptors().mutex.lock(); }, [] { descriptors().mutex.unlock(); },
                         [] {
                             for (const int one : descriptors().open)
                                 ::close(one);
                             descriptors().open.clear();
                             descriptors().mutex.unlock();
                         });
        return new Descriptors;  // never destroyed: a fork may come late
    }();
    return *all;
}

template <class Open>
int open_descriptor(Open&& open) {
    Descriptors& all = descriptors();
    const std::lock_guard lock(all.mutex);
    const int made = base::above_stdio(open());
    if (made >= 0) all.open.push_back(made);
    return made;
}

sockaddr_in at(const SocketAddress& place) {
    return {.sin_family = AF_INET, .sin_port = place.port, .sin_addr = {place.address}, .sin_zero = {}};
}

int connect(const Socket& socket, const SocketAddress& place) {
    const sockaddr_in there = at(place);
    return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0 ? 0 : errno;
}

// The kernel ends the connection with an error once the other host has been silent for so long. The time-out replaces
// the count of keep-alive probes, which go out every second.
void set_patience(const Socket& socket, std::int64_t timeout_ns) {
    const int one = 1;
    const auto milliseconds =
        static_cast<unsigned>(std::clamp<std::int64_t>(timeout_ns / 1000000, 1, std::numeric_limits<int>::max()));
    ::setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_KEEPIDLE, &one, sizeof one);
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_KEEPINTVL, &one, sizeof one);
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof milliseconds);
}

// Bytes received, 0 at the end of the connection, or the negative error; -EAGAIN: nothing yet.
ssize_t receive(const Socket& socket, void* to, std::size_t bytes) {
    ssize_t got = 0;
    while ((got = ::recv(socket.get(), to, bytes, MSG_DONTWAIT)) < 0 && errno == EINTR) {
    }
    return got >= 0 ? got : -errno;
}

bool send_word(const Socket& socket, std::uint64_t word) {
    return ::send(socket.get(), &word, sizeof word, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof word;
}

}  // namespace

Socket Socket::make() {
    Socket made;
    made.descriptor_ = open_descriptor([] { return ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); });
    return made;
}

Socket Socket::accept(const Socket& listening) {
    Socket made;
    made.descriptor_ =
        open_descriptor([&] { return ::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); });
    return made;
}

void Socket::reset() {
    if (descriptor_ < 0) return;
    Descriptors& all = descriptors();
    const std::lock_guard lock(all.mutex);
    // In a child made by fork the number may belong to another file by now.
    if (std::erase(all.open, descriptor_) > 0) ::close(descriptor_);
    descriptor_ = -1;
}

SocketAddress Lifeline::open(std::uint32_t address, std::int64_t timeout_ns) {
    sockaddr_in mine = at({address, 0, 0});
    socklen_t length = sizeof mine;
    socket_ = Socket::make();
    if (!socket_) return {};
    set_patience(socket_, timeout_ns);  // the connections inherit it
    // The kernel lowers the backlog to its own limit.
    if (::bind(socket_.get(), reinterpret_cast<sockaddr*>(&mine), length) != 0 ||
        ::listen(socket_.get(), std::numeric_limits<int>::max()) != 0 ||
        ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&mine), &length) != 0)
        return {};
    return {mine.sin_addr.s_addr, mine.sin_port, 0};
}

void Lifeline::serve(const Answer& answer) {
    if (!socket_) return;
    std::erase_if(observers_, [&](Observer& observer) { return !serve(observer, answer); });
    while (observers_.size() < kMostObservers) {
        Socket next = Socket::accept(socket_);
        if (!next) break;
        Observer observer{std::move(next)};
        if (serve(observer, answer)) observers_.push_back(std::move(observer));
    }
}

// False if the observer has closed the connection.
bool Lifeline::serve(Observer& observer, const Answer& answer) {
    for (char more = 0;;) {
        const std::size_t missing = sizeof observer.token - observer.received;
        char* const to = missing > 0 ? reinterpret_cast<char*>(&observer.token) + observer.received : &more;
        const ssize_t got = receive(observer.socket, to, std::max<std::size_t>(missing, 1));
        if (got == -EAGAIN) break;
        if (got <= 0 || missing == 0) return false;
        observer.received += static_cast<std::size_t>(got);
    }
    if (observer.received < sizeof observer.token) return true;
    const std::uint64_t word = answer(observer.token);
    if (word != observer.answered && send_word(observer.socket, word)) observer.answered = word;
    return true;
}

Watch::Sign Watch::look(const SocketAddress& place, std::uint64_t mine, std::uint64_t its, std::int64_t timeout_ns) {
    if (place.port == 0) return Sign::None;
    if (!socket_)
        if (const Sign begun = begin(place, timeout_ns); begun != Sign::Unknown) return begun;
    if (!socket_) return Sign::Unknown;
    for (;;) {
        const ssize_t got = receive(socket_, reinterpret_cast<char*>(&word_) + received_, sizeof word_ - received_);
        if (got == -EAGAIN) return sign_ == Sign::Unknown ? await_answer(mine, timeout_ns) : sign_;
        if (got < 0) return failed(static_cast<int>(-got), timeout_ns);
        if (got == 0) return asks_host_ ? failed(ECONNRESET, timeout_ns) : Sign::Gone;
        received_ += static_cast<std::size_t>(got);
        if (received_ == sizeof word_ && !asks_host_ && !read(its, timeout_ns)) return Sign::Gone;
    }
}

// Takes a word; false if another program has sent it.
bool Watch::read(std::uint64_t its, std::int64_t timeout_ns) {
    received_ = 0;
    if (word_ != its && word_ != ~its) return false;
    sign_ = word_ == its ? Sign::Lives : Sign::Lost;
    set_patience(socket_, timeout_ns);
    return true;
}

// A silent host gets half of the time at the process's port and half at another one: if only the process's port does
// not answer, more observers wait there than the kernel's queue admits, and the process exists.
Watch::Sign Watch::begin(const SocketAddress& place, std::int64_t timeout_ns) {
    const std::int64_t now = now_ns();
    if (silent_ == 0) silent_ = now;
    socket_ = Socket::make();
    if (!socket_) return Sign::None;
    connected_ = false;
    received_ = 0;
    asks_host_ = now - silent_ >= timeout_ns / 2;
    set_patience(socket_, timeout_ns / 2);
    const int error = connect(socket_, asks_host_ ? SocketAddress{place.address, htons(kOtherPort), 0} : place);
    return error == 0 || error == EINPROGRESS ? Sign::Unknown : failed(error, timeout_ns);
}

// The process has not answered yet.
Watch::Sign Watch::await_answer(std::uint64_t mine, std::int64_t timeout_ns) {
    if (connected_) return Sign::Unknown;
    pollfd ready{socket_.get(), POLLOUT, 0};
    if (::poll(&ready, 1, 0) == 1) {
        if ((ready.revents & (POLLERR | POLLHUP)) != 0) return Sign::Unknown;  // the next look reads the error
        silent_ = 0;
        connected_ = true;
        if (asks_host_)
            socket_.reset();
        else
            send_word(socket_, mine);
        return Sign::Unknown;
    }
    const std::int64_t silence = now_ns() - silent_;
    if (silence >= timeout_ns) return Sign::Gone;
    if (!asks_host_ && silence >= timeout_ns / 2) socket_.reset();
    return Sign::Unknown;
}

// The connection, or the attempt, has ended with an error.
Watch::Sign Watch::failed(int error, std::int64_t timeout_ns) {
    const bool answered = sign_ != Sign::Unknown;
    const bool refused = error == ECONNREFUSED;
    if (answered || (refused && !asks_host_)) return Sign::Gone;
    socket_.reset();
    const std::int64_t now = now_ns();
    // A connection that the process has not accepted may be reset because the queue was full; the next attempt shows
    // that.
    if (refused || error == ECONNRESET || error == EPIPE)
        silent_ = 0;
    else if (connected_)
        silent_ = now - timeout_ns / 2;
    return silent_ != 0 && now - silent_ >= timeout_ns ? Sign::Gone : Sign::Unknown;
}

Reached reach(const SocketAddress& place, int milliseconds) {
    const Socket attempt = place.port != 0 ? Socket::make() : Socket();
    if (!attempt) return Reached::Nothing;
    int error = connect(attempt, place);
    pollfd ready{attempt.get(), POLLOUT, 0};
    if (error == EINPROGRESS && ::poll(&ready, 1, milliseconds) == 1) {
        socklen_t length = sizeof error;
        ::getsockopt(attempt.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    }
    return error == 0 ? Reached::Accepted : error == ECONNREFUSED ? Reached::Refused : Reached::Nothing;
}

}  // namespace osc::progress
