// Runs of updates without synchronisation between them. The targets of a run are closed for the fast paths, so that
// every other operation on them passes leave_batch() first.
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

void join(UpdateRun& run, Peer& peer) {
    peer.close();
    peer.batched = true;
    run.was_short = false;
}

void end(UpdateRun& run) {
    run.is_long = run.length >= kLong;
    run.was_short = !run.is_long;
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

}  // namespace

bool try_update(Core& core, std::uint32_t rank, std::int64_t disp, const SmallUpdate& update) {
    Peer& peer = core.peer(rank);
    if (static_cast<std::uint64_t>(disp) >= peer.full_limit) return false;
    const std::uint64_t offset = static_cast<std::uint64_t>(disp) * peer.unit;
    if (update.width > peer.size - offset) return false;
    UpdateRun& run = core.updates;
    const bool joined = peer.batched;
    if (!joined) {
        const bool is_open = peer.fast_limit.load(std::memory_order_relaxed) != 0;
        if (is_open ? update.is_quick : !opens(core, rank)) return false;
        if (!may_batch(core)) {
            if (update.is_quick) return false;
        } else {
            join(run, peer);
        }
    }
    note_order(core);
    if (joined && update.is_quick && run.was_short) {
        leave_batch(core, peer);
        return false;
    }
    const std::uint32_t stripe = shm::ControlBlock::stripe_number(offset);
    std::atomic<std::uint32_t>& holder = peer.control().stripes[stripe].holder;
    const shm::ElementUpdate element{peer.base + offset, update.apply, update.operands};
    if (++run.length >= kLong && !run.is_long) {
        run.is_long = true;
        run.was_short = false;
    }
    if (!run.is_long || !peer.batched) return shm::update_now(holder, element, core.me, core);
    if (run.batch == nullptr)
        run.batch = std::make_unique<shm::Batch>(core.me, core.controls.local_count(core.size), core);
    if (run.batch->is_empty()) {
        core.incomplete.fetch_add(1, std::memory_order_relaxed);
        mark_incomplete(core, peer);
    }
    run.batch->add(holder, rank * shm::kStripes + stripe, element);
    return true;
}

void end_run(Core& core) {
    core.perform_batch();
    end(core.updates);
}

void leave_batch(Core& core, Peer& peer) {
    core.perform_batch();
    peer.batched = false;
    peer.allow();
}

}  // namespace osc::epoch
