// Runs of updates without synchronisation between them. The targets of a long run are closed for the fast paths, so
// that every other operation on them passes leave_batch() first. Other targets stay open, and operations on them do not
// end the run.
#include "epoch/updates.h"

#include "epoch/epoch.h"

namespace osc::epoch {
namespace {

constexpr std::uint32_t kLong = 32;  // updates of a run that the next ones are expected to continue

bool may_batch(const Core& core) {
    if (core.threaded || core.ledger != nullptr) return false;
    switch (core.epoch.access) {
        case Access::FenceUsed:
            return core.strategies.fence->allows_batches();
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

// Opens a target for the fast paths again.
void reopen(Peer& peer) {
    peer.batched = false;
    peer.allow();
}

// Closes the target for the fast paths, and makes the batch ready for one more update.
shm::Batch& begin(Core& core, Peer& peer) {
    UpdateRun& run = core.updates;
    if (!peer.batched) {
        peer.close();
        peer.batched = true;
    }
    if (run.batch == nullptr)
        run.batch = std::make_unique<shm::Batch>(core.me, core.controls.local_count(core.size), core);
    if (run.batch->is_empty()) {
        core.incomplete.fetch_add(1, std::memory_order_relaxed);
        mark_incomplete(core, peer);
    }
    return *run.batch;
}

// One more update of the run; whether it is long now.
bool lengthen(UpdateRun& run) {
    if (++run.length >= kLong) run.is_long = true;
    return run.is_long;
}

// Whether an operation on memory of a process of this node that is not mapped here goes to the batch. Those of a short
// run take the general path.
bool joins_unmapped(Core& core, Peer& peer, std::int64_t disp, std::uint64_t bytes, std::uint64_t& offset) {
    const auto length = static_cast<std::int64_t>(bytes);
    if (!may_batch(core) || !peer.contains(disp, length, peer.control().size + 1, offset)) return false;
    UpdateRun& run = core.updates;
    note_order(core);
    if (peer.batched && !run.is_long) reopen(peer);
    bool deferred = false;
    if (!peer.batched && (open_target(core, peer, &deferred) != Fault::None || deferred)) return false;
    return lengthen(run);
}

bool try_unmapped(Core& core, Peer& peer, std::int64_t disp, const SmallUpdate& update) {
    std::uint64_t offset = 0;
    if (!joins_unmapped(core, peer, disp, update.width, offset)) return false;
    const shm::ElementUpdate element{reinterpret_cast<std::byte*>(peer.control().base + offset), update.apply,
                                     update.operands};
    begin(core, peer)
        .add_unmapped(peer.control().stripe_of(offset), batch_key(peer, offset), {core.pid_of(peer.rank), update.width},
                      element);
    return true;
}

}  // namespace

bool try_update(Core& core, std::uint32_t rank, std::int64_t disp, const SmallUpdate& update) {
    Peer& peer = core.peer(rank);
    if (peer.path == Path::Cma) return try_unmapped(core, peer, disp, update);
    std::uint64_t offset = 0;
    if (!peer.contains(disp, update.width, peer.full_limit, offset)) return false;
    if (!peer.batched) {
        if (update.is_quick) return false;
        if (peer.fast_limit.load(std::memory_order_relaxed) == 0 && !opens(core, rank)) return false;
    }
    const shm::ElementUpdate element{peer.base + offset, update.apply, update.operands};
    if (may_batch(core)) {
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
    std::uint64_t offset = 0;
    if (!joins_unmapped(core, peer, disp, move.bytes, offset)) return false;
    cma::Moves& moves = begin(core, peer).moves_of(core.pid_of(rank));
    const std::uint64_t address = peer.control().base + offset;
    if (move.is_put)
        moves.put(address, move.here, move.bytes);
    else
        moves.get(address, move.here, move.bytes);
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
