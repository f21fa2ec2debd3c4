// The part of a window that does not know MPI: its targets, what it shares with the other processes, and the state of
// its epochs. The rooms epoch and sync work on this, so that they run in unit tests with ranks as threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "diag/fault.h"
#include "sync/lock.h"
#include "transport/shm/control.h"

namespace osc {

/// How this process reaches the memory of a target.
enum class Path : std::uint8_t {
    Unknown,
    Direct,   // by load and store: shared memory, or its own
    Cma,      // by process_vm_readv and process_vm_writev
    Agent,    // by asking the target's agent
    Dynamic,  // region by region
};

/// What an operation on a target may do without asking the epoch.
enum class Open : std::uint8_t {
    No,      // no epoch, or nothing known of it yet: epoch::open_target decides
    Direct,  // load and store at `base`
    Slow,    // allowed, but not by load and store
};

/// A lock that this process holds on a target.
enum class Held : std::uint8_t { None, Shared, Exclusive, NoCheck };

/// The post of a target for the open start.
enum class Post : std::uint8_t { Open, Awaited, Taken };

/// What this process knows of one target. Filled on first use, valid for the window's life.
struct Peer {
    std::byte* base = nullptr;  // displacement 0 as mapped here, for Path::Direct
    std::uint64_t size = 0;     // bytes
    std::uint64_t unit = 1;     // displacement unit, bytes
    shm::ControlBlock* block = nullptr;
    std::uint64_t remote = 0;  // address of displacement 0 in the target's address space
    std::atomic<Open> open{Open::No};
    std::atomic<bool> known{false};  // all but `open`, `held` and `started` is filled in
    Path path = Path::Unknown;
    Held held = Held::None;
    bool started = false;  // in the group of the open start
    std::atomic<Post> post{Post::Open};
    std::uint32_t rank = 0;

    void allow() { open.store(path == Path::Direct ? Open::Direct : Open::Slow, std::memory_order_release); }
};

/// The access epoch of a process at a window. A fence opens one that only its first operation makes real: until then
/// lock, start and post may follow (MPI 4.1 section 12.5.1).
enum class Access : std::uint8_t { None, Fence, FenceUsed, Start, Lock, LockAll };

struct Epoch {
    Access access = Access::None;
    bool no_check = false;               // the open start or lock_all promised that no synchronisation is needed
    bool posted = false;                 // an exposure epoch by post is open
    std::uint32_t locks = 0;             // targets locked one by one
    std::vector<std::uint32_t> touched;  // targets opened by a fence, lock_all or start
    std::vector<std::uint32_t> group;    // of the open start
    std::vector<std::uint32_t> origins;  // of the open post
};

class Core : public sync::Liveness {
  public:
    static constexpr std::uint32_t kChunk = 8;  // peers are known by chunks of this many

    Core(std::uint32_t rank, std::uint32_t processes)
        : me(rank), size(processes), chunks(new std::atomic<Peer*>[(processes + kChunk - 1) / kChunk]()) {}
    Core(const Core&) = delete;
    Core& operator=(const Core&) = delete;
    virtual ~Core();

    /// The target `rank` < size, known from now on.
    Peer& peer(std::uint32_t rank) {
        Peer* chunk = chunks[rank / kChunk].load(std::memory_order_acquire);
        if (chunk != nullptr && chunk[rank % kChunk].known.load(std::memory_order_acquire)) return chunk[rank % kChunk];
        return know(rank);
    }

    /// The target if an operation may load and store there now, else null.
    Peer* direct_peer(int rank) {
        if (static_cast<std::uint32_t>(rank) >= size) return nullptr;
        Peer* chunk = chunks[static_cast<std::uint32_t>(rank) / kChunk].load(std::memory_order_acquire);
        if (chunk == nullptr) return nullptr;
        Peer& known = chunk[static_cast<std::uint32_t>(rank) % kChunk];
        return known.open.load(std::memory_order_acquire) == Open::Direct ? &known : nullptr;
    }

    shm::ControlBlock& mine() const { return slot.block(me); }
    sync::LockContext lock_context() { return {slot, me, size, *this}; }

    /// A member that has died, or -1. Slow: asks the system about each.
    int any_dead();

    const std::uint32_t me;
    const std::uint32_t size;
    std::unique_ptr<std::atomic<Peer*>[]> chunks;
    shm::Slot slot;
    Epoch epoch;
    bool threaded = false;        // MPI_THREAD_MULTIPLE: epoch, peers and cell_busy are under `mutex`
    bool cell_busy = false;       // a thread stands in a lock's queue with this process's cell
    bool pointers_given = false;  // the user holds pointers to other processes' memory
    std::mutex mutex;

  protected:
    /// Fills what is to know about a target, by the window's flavour. One thread at a time.
    virtual void describe(Peer& peer) = 0;

  private:
    Peer& know(std::uint32_t rank);
    std::mutex know_mutex_;
};

/// Takes a window's mutex if other threads may be in the same window.
class StateGuard {
  public:
    explicit StateGuard(Core& core) : core_(core), held_(core.threaded) {
        if (held_) core_.mutex.lock();
    }
    ~StateGuard() {
        if (held_) core_.mutex.unlock();
    }
    StateGuard(const StateGuard&) = delete;
    StateGuard& operator=(const StateGuard&) = delete;

    /// Lets other threads in while this one waits.
    template <class F>
    auto unlocked(F&& wait) {
        if (held_) core_.mutex.unlock();
        auto result = wait();
        if (held_) core_.mutex.lock();
        return result;
    }

  private:
    Core& core_;
    bool held_;
};

}  // namespace osc
