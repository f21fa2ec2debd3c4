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

// Adds an update to the batch.
void add(Core& core, Peer& peer, std::uint64_t offset, const shm::ElementUpdate& element) {
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
    run.batch->add(peer.control().stripe_of(offset), batch_key(peer, offset), element);
}

}  // namespace

bool try_update(Core& core, std::uint32_t rank, std::int64_t disp, const SmallUpdate& update) {
    Peer& peer = core.peer(rank);
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
        if (++run.length >= kLong) run.is_long = true;
        if (run.is_long) {
            add(core, peer, offset, element);
            return true;
        }
    }
    return shm::update_now(peer.control().stripe_of(offset), element, core.me, core);
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
