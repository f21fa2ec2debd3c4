// The control connection of net_raw: its two processes exchange addresses, barriers and the end of a run over one TCP
// connection beside the network under test. A lost peer ends the program.
// A waiting process polls: the kernel tends to wake a sleeper on its waker's core, and two processes that poll on one
// core measure its time slices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace bench {

class Control {
  public:
    // Rank 0 listens, rank 1 connects to it and tries for some seconds.
    Control(int rank, const std::string& server, int port);
    ~Control();
    Control(const Control&) = delete;
    Control& operator=(const Control&) = delete;

    void send(const void* data, std::size_t bytes) const;
    void receive(void* data, std::size_t bytes) const;

    // A barrier in which both processes give a value; returns the other's.
    std::uint64_t swap(std::uint64_t mine) const;
    void meet() const { swap(0); }

    // Whether the other has sent something that waits to be received.
    bool stopped() const;

    // The address of this host on the way to the other, in figures.
    std::string own_address() const;

  private:
    int socket_ = -1;
};

}  // namespace bench
