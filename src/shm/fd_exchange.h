// Passes arenas between processes that cannot open each other's descriptors in /proc: processes in different PID
// namespaces, or without permission. During one exchange each process listens at an abstract socket and sends the
// descriptor of its arena (SCM_RIGHTS) to every process that knows its token. No function waits: the caller repeats
// serve() and fetch() and drives the host meanwhile. An abstract name disappears with its socket (invariant I5) and is
// visible inside one network namespace only.
#pragma once

#include <chrono>
#include <cstdint>

#include "shm/arena.h"

namespace osc::shm {

enum class Fetched { NotYet, Yes, Never };

class FdExchange {
  public:
    /// Listens at the name that belongs to `number`, a random one; listening() says whether that worked. From now on
    /// other processes can test through this process's arena whether it lives.
    explicit FdExchange(std::uint64_t number);
    ~FdExchange();
    FdExchange(const FdExchange&) = delete;
    FdExchange& operator=(const FdExchange&) = delete;

    bool listening() const { return listener_ >= 0; }

    /// Answers pending requests.
    void serve();

    /// Requests the arena of the process that listens at `number`, and adopts it. The caller repeats the call with the
    /// same arguments while it returns NotYet. Never: no process listens there, or one that does not own the arena.
    Fetched fetch(std::uint64_t number, PeerArena& peer);
    /// Ends an incomplete fetch().
    void abandon();

  private:
    int listener_ = -1;
    int client_ = -1;  // accepted connection whose request is not read yet
    std::chrono::steady_clock::time_point accepted_at_;
    int fetching_ = -1;  // connection of an incomplete fetch()
};

/// Whether the owner of the arena behind this descriptor lives. The owner must have called Arena::show_life().
bool arena_owner_lives(int descriptor);

}  // namespace osc::shm
