// Which processes a waiting process waits for, read from a window's control table: for the hang reporter. Nothing here
// waits or changes anything, so what it finds may be out of date already.
#pragma once

#include <cstdint>
#include <type_traits>

#include "shm/activity.h"
#include "shm/control.h"

namespace osc::sync {

/// A wait of a window's process `waiter`; the other fields as in shm::WaitNote.
struct WaitQuestion {
    shm::WaitKind kind = shm::WaitKind::None;
    std::uint32_t waiter = 0;
    std::uint32_t target = 0;
    std::uint32_t barriers = 0;
};

/// How a process keeps another one waiting.
enum class Relation : std::uint32_t {
    HoldsExclusive,  // the lock of the target
    HoldsShared,
    HasNotPosted,
    HasNotCompleted,  // it has called MPI_Win_start
    HasNotStarted,    // the post has reached it, and it has not called MPI_Win_start
    HasNotEntered,    // the fence, or the window's free
    InsideBarrier,    // it has entered, and awaits other nodes
    HasNotAnswered,   // operations, or the closes of a fence
    MayNotify,        // a counter of the waiter: any process of the window
};

struct Awaited {
    static constexpr std::uint32_t kMost = 14;
    std::uint32_t count = 0;   // of `ranks`
    std::uint32_t others = 0;  // further ones
    struct Entry {
        std::uint32_t rank;
        Relation relation;
    } ranks[kMost]{};

    void add(std::uint32_t rank, Relation relation) {
        if (count < kMost)
            ranks[count++] = {rank, relation};
        else
            ++others;
    }
};
static_assert(std::is_trivially_copyable_v<Awaited> && sizeof(Awaited) % 8 == 0);

/// Adds the processes of this node that the wait is for, of a window of `processes`. For a lock also holders on other
/// nodes, if the lock word names them and the target is on this node.
void find_awaited(const shm::ControlTable& controls, std::uint32_t processes, const WaitQuestion& question,
                  Awaited& awaited);

}  // namespace osc::sync
