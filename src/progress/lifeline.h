// Whether a process of another host still runs, as its operating system knows. Each process listens at a TCP port. A
// process in doubt about a peer (the observer) connects there and keeps the connection until it hears from the peer
// again: the peer's kernel answers keep-alive probes for as long as the peer exists, also while it is stopped, and
// closes the connection when the peer ends. docs/NETWORK.md ("Deaths") has the protocol and its cases.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace osc::progress {

/// An IPv4 address and a port, both in network order; port 0: none.
struct SocketAddress {
    std::uint32_t address = 0;
    std::uint16_t port = 0;
    std::uint16_t zero = 0;
};

/// Owns a descriptor. A child made by fork closes it, because a copy there would keep the connections of a dead parent
/// open. Different objects may be used at the same time.
class Socket {
  public:
    Socket() = default;
    ~Socket() { reset(); }
    Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    Socket& operator=(Socket&& other) noexcept {
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }

    /// A socket for a TCP connection that never blocks; empty if the system refuses.
    static Socket make();
    /// The next connection of a listening socket; empty if there is none.
    static Socket accept(const Socket& listening);
    void reset();
    explicit operator bool() const { return descriptor_ >= 0; }
    int get() const { return descriptor_; }

  private:
    int descriptor_ = -1;
};

/// This process's port, and the connections of its observers. Not thread-safe.
class Lifeline {
  public:
    /// The word for the observer with this token: own token, or its complement if this process answers no messages of
    /// the observer. 0: no answer.
    using Answer = std::function<std::uint64_t(std::uint64_t observer)>;

    /// Listens at an address of this host (network order); port 0 if the system refuses.
    SocketAddress open(std::uint32_t address, std::int64_t timeout_ns);
    /// Accepts observers, answers them, and forgets those that have closed.
    void serve(const Answer& answer);

  private:
    // Other observers wait in the kernel's queue, which keeps their connections too.
    static constexpr std::size_t kMostObservers = 64;
    struct Observer {
        Socket socket;
        std::uint64_t token = 0;
        std::size_t received = 0;  // bytes of the token
        std::uint64_t answered = 0;
    };
    static bool serve(Observer& observer, const Answer& answer);

    Socket socket_;
    std::vector<Observer> observers_;
};

/// The observation of one process by at most one connection. Not thread-safe.
class Watch {
  public:
    enum class Sign {
        None,     // there is no lifeline, or no descriptor left
        Unknown,  // no answer yet: the process may be stopped
        Lives,    // it has answered since end()
        Lost,     // it lives, and answers no messages of this process any more
        Gone,     // refused or closed by its kernel, another program's port by now, or its host is silent for too long
    };
    /// Looks without waiting; the first call connects. `mine` and `its`: tokens. `timeout_ns`: how long the host may
    /// be silent.
    Sign look(const SocketAddress& place, std::uint64_t mine, std::uint64_t its, std::int64_t timeout_ns);
    /// Closes the connection.
    void end() { *this = {}; }

  private:
    Sign begin(const SocketAddress& place, std::int64_t timeout_ns);
    Sign await_answer(std::uint64_t mine, std::int64_t timeout_ns);
    Sign failed(int error, std::int64_t timeout_ns);
    bool read(std::uint64_t its, std::int64_t timeout_ns);

    Socket socket_;
    Sign sign_ = Sign::Unknown;  // of the process's last word
    bool connected_ = false;
    bool asks_host_ = false;  // the connection is to another port of the host
    std::uint64_t word_ = 0;
    std::size_t received_ = 0;  // bytes of word_
    std::int64_t silent_ = 0;   // since when the host has not answered; 0: it has
};

/// Whether the operating system of a process answers a connection attempt, accepted or refused, in time. Waits.
enum class Reached { Accepted, Refused, Nothing };
Reached reach(const SocketAddress& place, int milliseconds);

}  // namespace osc::progress
