// Whether a process of another host still runs, as its operating system knows: each process listens at a TCP port that
// receives no data, and a process in doubt connects to it. A refused connection proves that the process is gone, at
// once, where libfabric's software providers would retry for ever. Any other result proves nothing: the host may be
// down, or the network cut.
#pragma once

#include <cstdint>

namespace osc::progress {

/// An IPv4 address and a port, both in network order; port 0: none.
struct SocketAddress {
    std::uint32_t address = 0;
    std::uint16_t port = 0;
    std::uint16_t zero = 0;
};

/// This process's port. Not thread-safe.
class Lifeline {
  public:
    Lifeline() = default;
    ~Lifeline();
    Lifeline(const Lifeline&) = delete;
    Lifeline& operator=(const Lifeline&) = delete;

    /// Listens at an address of this host (network order); none if the system refuses.
    SocketAddress open(std::uint32_t address);
    /// Closes the connections of processes that were in doubt.
    void drain() const;

  private:
    int socket_ = -1;
};

/// Whether the operating system of a process answers a connection attempt, accepted or refused, in time. Waits.
enum class Reached { Accepted, Refused, Nothing };
Reached reach(const SocketAddress& place, int milliseconds);

/// One connection attempt, made without waiting. Not thread-safe.
class Probe {
  public:
    Probe() = default;
    ~Probe();
    Probe(const Probe&) = delete;
    Probe& operator=(const Probe&) = delete;

    /// Begins the attempt or looks at its result: true if the process is certainly gone.
    bool gone(const SocketAddress& place);

  private:
    void end();
    int socket_ = -1;
};

}  // namespace osc::progress
