// Handing arenas over where /proc does not show them: to and from processes in other PID namespaces, or that may not
// look at each other's descriptors. Each process listens at an abstract socket for the time of one exchange and hands
// the descriptor of its arena (SCM_RIGHTS) to whoever knows its token. Nothing here waits: the caller repeats both
// halves and drives the host meanwhile. Abstract names go with their sockets (invariant I5), and are seen only inside
// one network namespace.
#pragma once

#include <chrono>
#include <cstdint>

#include "transport/shm/arena.h"

namespace osc::shm {

enum class Fetched { NotYet, Yes, Never };

class Passing {
  public:
    /// Listens at the name that belongs to `number`, a random one; from now on this process's arena shows that it
    /// lives. `listening()` says whether the system allows that.
    explicit Passing(std::uint64_t number);
    ~Passing();
    Passing(const Passing&) = delete;
    Passing& operator=(const Passing&) = delete;

    bool listening() const { return listener_ >= 0; }

    /// Answers those who ask.
    void serve();

    /// Asks the process that listens at `number` for its arena and adopts it, in as many calls as that takes, with the
    /// same arguments. Never: nobody listens there, or who listens does not own the arena.
    Fetched fetch(std::uint64_t number, PeerArena& peer);
    /// Gives up what `fetch` has begun.
    void abandon();

  private:
    int listener_ = -1;
    int caller_ = -1;  // accepted, its question not read yet
    std::chrono::steady_clock::time_point came_;
    int asked_ = -1;  // connected, the answer not come yet
};

/// Whether the process lives that owns the arena behind this descriptor, after it has listened once.
bool arena_owner_lives(int descriptor);

}  // namespace osc::shm
