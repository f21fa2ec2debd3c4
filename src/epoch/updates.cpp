// Runs of updates without synchronisation between them. The targets of a long run on mapped memory are closed for the
// fast paths, so that every other operation on them passes leave_batch() first. Other targets stay open, and operations
// on them do not end the run; nor do the fast paths' own on a target of which only memory that they do not reach has a
// run.
#include "epoch/updates.h"

#include <utility>

#include "epoch/epoch.h"
#include "reach/reach.h"

namespace osc::epoch {
namespace {

using reach::PrivatePlace;

constexpr std::uint32_t kLong = 32;  // updates of a run that the next ones are expected to continue

enum class Memory { Mapped, Unmapped };

// MPI_Win_lock's fast unlock knows no runs, and is worth more than one on mapped memory.
bool may_batch(const Core& core, Memory memory) {
    if (core.threaded || core.ledger != nullptr) return false;
    switch (core.epoch.access) {
        case Access::FenceUsed:
            return core.strategies.fence->allows_batches();
        case Access::Lock:
            return memory == Memory::Unmapped && core.strategies.lock->allows_batches();
        case Access::LockAll:
            return core.strategies.lock->allows_batches();
        case Access::Start:
            return core.strategies.pscw->allows_batches();
        default:
            return false;
    }
}

void end(UpdateRun& run) {
    run.is_long = run.length >= kLong;
    run.length = 0;
}

// Ends the run before, if a synchronisation call has come since.
void note_order(Core& core) {
    UpdateRun& run = core.updates;
    const std::uint32_t order = core.order.load(std::memory_order_relaxed);
    if (order == run.order) return;
    run.order = order;
    if (run.length != 0) end(run);  // else end_run() has come in between
}

// Takes a target out of the run, and opens it for the fast paths again.
void reopen(Peer& peer) {
    peer.unmapped_run = false;
    if (std::exchange(peer.batched, false)) peer.allow();
}

// Makes the batch ready for one more operation.
shm::Batch& ready_batch(Core& core, Peer& peer) {
    UpdateRun& run = core.updates;
    if (run.batch == nullptr)
        run.batch = std::make_unique<shm::Batch>(core.me, core.controls.local_count(core.size), core);
    if (run.batch->is_empty()) {
        core.incomplete.fetch_add(1, std::memory_order_relaxed);
        mark_incomplete(core, peer);
    }
    return *run.batch;
}

// The same, and closes the target for the fast paths.
shm::Batch& begin(Core& core, Peer& peer) {
    if (!peer.batched) {
        peer.close();
        peer.batched = true;
    }
    return ready_batch(core, peer);
}

// The same for memory that the fast paths do not reach. The fast unlock must not pass by the batch.
shm::Batch& begin_unmapped(Core& core, Peer& peer) {
    peer.unmapped_run = true;
    if (peer.held_lock == HeldLock::Exclusive) mark_incomplete(core, peer);
    return ready_batch(core, peer);
}

// One more update of the run; whether it is long now.
bool lengthen(UpdateRun& run) {
    if (++run.length >= kLong) run.is_long = true;
    return run.is_long;
}

// Whether an operation goes to the batch because its place is not mapped here. Those of a short run take the general
// path.
bool joins_unmapped(Core& core, Peer& peer, std::int64_t disp, std::uint64_t bytes, PrivatePlace& place) {
    if (!may_batch(core, Memory::Unmapped) || !core.reach(peer).find_unmapped(peer, disp, bytes, place)) return false;
    UpdateRun& run = core.updates;
    note_order(core);
    if (peer.is_in_run() && !run.is_long) reopen(peer);
    bool deferred = false;
    if (!peer.is_in_run() && (open_target(core, peer, &deferred) != Fault::None || deferred)) return false;
    stats::t_path = stats::DataPath::ProcessVm;
    return lengthen(run);
}

bool try_unmapped(Core& core, Peer& peer, std::int64_t disp, const SmallUpdate& update) {
    PrivatePlace place;
    if (!joins_unmapped(core, peer, disp, update.width, place)) return false;
    const shm::ElementUpdate element{reinterpret_cast<std::byte*>(place.address), update.apply, update.operands};
    begin_unmapped(core, peer)
        .add_unmapped(peer.control().stripe_of(place.offset), batch_key(peer, place.offset), {place.pid, update.width},
                      element);
    return true;
}

}  // namespace

bool try_update(Core& core, std::uint32_t rank, std::int64_t disp, const SmallUpdate& update) {
    Peer& peer = core.peer(rank);
    if (may_have_unmapped(core, peer) && try_unmapped(core, peer, disp, update)) return true;
    std::uint64_t offset = 0;
    if (!peer.contains(disp, update.width, peer.full_limit, offset)) return false;
    if (!peer.batched) {
        if (update.is_quick) return false;
        if (peer.fast_limit.load(std::memory_order_relaxed) == 0 && !opens(core, rank)) return false;
    }
    const shm::ElementUpdate element{peer.base + offset, update.apply, update.operands};
    if (may_batch(core, Memory::Mapped)) {
        UpdateRun& run = core.updates;
        note_order(core);
        if (peer.batched && !run.is_long) {
            reopen(peer);
            if (update.is_quick) return false;
        }
        if (lengthen(run)) {
            begin(core, peer).add(peer.control().stripe_of(offset), batch_key(peer, offset), element);
            return true;
        }
    }
    return shm::update_now(peer.control().stripe_of(offset), element, core.me, core);
}

bool try_move(Core& core, std::uint32_t rank, std::int64_t disp, const SmallMove& move) {
    Peer& peer = core.peer(rank);
    PrivatePlace place;
    if (!joins_unmapped(core, peer, disp, move.bytes, place)) return false;
    cma::Moves& moves = begin_unmapped(core, peer).moves_of(place.pid);
    if (move.is_put)
        moves.put(place.address, move.here, move.bytes);
    else
        moves.get(place.address, move.here, move.bytes);
    return true;
}

void end_run(Core& core) {
    core.perform_batch();
    end(core.updates);
}

void leave_batch(Core& core, Peer& peer) {
    core.perform_batch();
    core.updates.length = 0;
    core.updates.is_long = false;
    reopen(peer);
}

}  // namespace osc::epoch
