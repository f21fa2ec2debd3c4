// Whether a process of another host still runs, asked of its system and not of it: each process listens at a TCP port
// that nothing is ever sent to, and who has doubts connects. A refused connection says that the process is gone,
// at once and for sure, where libfabric's software providers try to reach it for ever. Anything else says nothing: the
// host may be down, or the network cut.
#pragma once

#include <cstdint>

namespace osc::net {

/// An IPv4 address and a port, both in network order; port 0: none.
struct Place {
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
    Place open(std::uint32_t address);
    /// Lets go those who have asked.
    void drain() const;

  private:
    int socket_ = -1;
};

/// One question, asked without waiting. Not thread-safe.
class Probe {
  public:
    Probe() = default;
    ~Probe();
    Probe(const Probe&) = delete;
    Probe& operator=(const Probe&) = delete;

    /// Asks, or looks what has come of it: true if the process is gone for sure.
    bool gone(const Place& place);

  private:
    void end();
    int socket_ = -1;
};

}  // namespace osc::net
