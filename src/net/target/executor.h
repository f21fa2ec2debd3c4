// The executor: does the operations of a message on this process's memory, under the stripe locks of every other path
// (I1). Both channels use it: AgentService for processes of the node, TargetService for those of other nodes.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "net/process_table.h"
#include "net/shape.h"
#include "net/target/guard.h"
#include "net/wire.h"
#include "op/transport.h"
#include "shm/control.h"
#include "shm/regions.h"
#include "sync/lock.h"
#include "sync/notify.h"

namespace osc::net {

class Caches;
class Leases;
class Neighbours;

/// A window's part in this process, as the target's side serves it to other processes. All that it points at outlives
/// the registration with AgentService or TargetService.
struct ExposedWindow {
    std::byte* base = nullptr;            // displacement 0; null in dynamic windows
    std::uint64_t size = 0;               // bytes
    shm::RegionTable* regions = nullptr;  // dynamic windows: the attached memory
    const shm::ControlTable* controls = nullptr;
    std::uint32_t rank = 0;       // of the owner in the window's group
    std::uint32_t processes = 0;  // of the window
    sync::Liveness* liveness = nullptr;
    std::shared_ptr<Guard> guard;      // executes nothing on pages that it does not admit; null: no guard
    stats::Counters* stats = nullptr;  // of the owner, or null

    // For processes of other nodes only.
    std::uint64_t id = 0;
    std::uint64_t unit = 1;    // bytes
    Tokens tokens;             // of all processes
    Leases* leases = nullptr;  // dynamic windows: what other processes know of the regions
    Caches* caches = nullptr;  // dynamic windows: what this process knows of others' regions
    const std::atomic<sync::NotifyBoard*>* board = nullptr;  // the notification counters; null: none
    Neighbours* neighbours = nullptr;                        // null: no answers to the hang reporter
    fabric::Exposed exposed;
    fabric::Exposed words;  // of two-level locks, in windows that have them
};

/// An operation of a message: the executor's own copy of the record, and the data in the message.
struct CheckedRecord {
    Record record;
    const std::byte* data = nullptr;
    Update how{};                             // by execute(); for all but put and get
    std::shared_ptr<const op::Shape> pieces;  // by execute(); null: one run of bytes

    /// The target's memory, without data if that is one run of bytes.
    const op::Shape& shape() const {
        static const op::Shape kNone;
        return pieces != nullptr ? *pieces : kNone;
    }
};

/// Executes the operations in order. Checks all of them before the first one touches memory (I7): defined for the type,
/// whole elements, inside the window or attached memory, on accessible pages if the window has a guard. `out` receives
/// what they return, each padded.
Status execute(const ExposedWindow& window, std::span<CheckedRecord> operations, std::byte* out, ShapeCache& shapes);

/// Whether execute_alike() takes the record: an operation on one element, a put or a get, in a window with memory of
/// its own.
bool is_small(const ExposedWindow& window, const Record& record);

/// Executes a record for which is_small() holds and those behind it that equal it in all but their displacements and
/// data, as execute() does one by one: a program that updates many elements of a window sends such rows. `records` has
/// returned `record`, and stands behind the last executed one on return. Appends what they return to `out`, up to
/// `most` bytes in all. The first failure; a record that fails returns zeros.
Status execute_alike(const ExposedWindow& window, Records& records, Record record, const std::byte* data,
                     std::vector<std::byte>& out, std::size_t most);

}  // namespace osc::net
