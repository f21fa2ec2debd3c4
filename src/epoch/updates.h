// Updates of single elements outside the fast paths, and the decision to batch them: docs/STRATEGIES.md#batches.
#pragma once

#include "strategy/core.h"

namespace osc::epoch {

/// One update of an element at a target that is mapped here or that process_vm_* reaches, as the call gives it.
struct SmallUpdate {
    op::Kernel apply;
    unsigned width;  // bytes, at most 8
    bool is_quick;   // the fast paths can do it
    shm::Operands operands;
};

/// The key of an update's stripe for shm::Batch::add(): processes of other nodes have no stripes here.
inline std::size_t batch_key(const Peer& peer, std::uint64_t offset) {
    return peer.local_index * shm::kStripes + shm::ControlBlock::stripe_number(offset);
}

/// Whether operations on the target may be batched because their memory is not mapped here. With threads nothing is
/// batched, and another one may be describing the target.
inline bool may_have_unmapped(const Core& core, const Peer& peer) {
    return !core.threaded && may_be_private(peer.way);
}

/// Whether an update that the fast paths did not perform goes through try_update(): one of a kind that they do not
/// know, because it is faster in cache; one on a target that such an update has closed; or one on memory that may not
/// be mapped here.
inline bool may_update(const Core& core, int rank, bool is_quick) {
    if (static_cast<std::uint32_t>(rank) >= core.size) return false;
    return !is_quick || core.peers[rank].batched || may_have_unmapped(core, core.peers[rank]);
}

/// Adds an update of a mapped element of rank < size to a batch that has some; false, with nothing done, in all other
/// cases.
inline bool try_add(Core& core, std::uint32_t rank, std::int64_t disp, const SmallUpdate& update) {
    const Peer& peer = core.peers[rank];
    UpdateRun& run = core.updates;
    const bool goes_on = peer.batched && run.is_long && run.order == core.order.load(std::memory_order_relaxed) &&
                         run.batch != nullptr && !run.batch->is_empty();
    std::uint64_t offset = 0;
    if (!goes_on || !peer.contains(disp, update.width, peer.full_limit, offset)) return false;
    run.batch->add(peer.control().stripe_of(offset), batch_key(peer, offset),
                   {peer.base + offset, update.apply, update.operands});
    ++run.length;
    return true;
}

/// Performs or batches an update of rank < size; opens the target before if it must. False if the fast or the general
/// path must decide, with nothing done except that.
bool try_update(Core& core, std::uint32_t rank, std::int64_t disp, const SmallUpdate& update);

/// A put or get of a few bytes of a process of this node.
struct SmallMove {
    void* here;
    std::uint64_t bytes;
    bool is_put;
};

/// Whether a move may go through try_move(): it is short, and its place may not be mapped here.
inline bool may_move(const Core& core, int rank, const SmallMove& move) {
    if (static_cast<std::uint32_t>(rank) >= core.size) return false;
    const std::size_t most = move.is_put ? cma::Moves::kMostPut : cma::Moves::kMostGet;
    return move.bytes <= most && may_have_unmapped(core, core.peers[rank]);
}

/// Batches a move at rank < size in a long run; false, with nothing done except that the target may be open, if the
/// general path must perform it.
bool try_move(Core& core, std::uint32_t rank, std::int64_t disp, const SmallMove& move);

/// Performs the batched updates of a window. Every synchronisation call comes here first: it ends a run of updates. A
/// fault stays for Core::complete_ops().
void end_run(Core& core);
inline void end_run_if_any(Core& core) {
    if (__builtin_expect(core.updates.length != 0, 0)) end_run(core);
}

/// Performs the batched updates, ends the run and opens a target for the fast paths again.
void leave_batch(Core& core, Peer& peer);

}  // namespace osc::epoch
