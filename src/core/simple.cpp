// Simple operations go by load and store to an open target, as one record more to a message that is being filled, or
// into a batch. A run is a row of operations that a batch may take, without synchronisation between them. The targets
// of a long run on mapped memory are closed for the fast paths, so that every other operation on them passes
// leave_batch() first. Other targets stay open, and operations on them do not end the run; nor do the fast paths' own
// on a target of which only memory that they do not reach has a run.
// Build: -O3
#include "core/simple.h"

#include <utility>

#include "core/epoch.h"
#include "local/direct.h"

namespace osc::epoch {
namespace {

constexpr std::uint32_t kLong = 32;          // operations of a run that the next ones are expected to continue
constexpr std::uint64_t kMostRecord = 1024;  // bytes: longer operations gain nothing from one message

enum class Memory { Mapped, Unmapped };

// MPI_Win_lock's fast unlock knows no runs, and is worth more than one on mapped memory.
bool may_batch(const Core& core, Memory memory) {
    if (core.threaded || core.ledger != nullptr) return false;
    if (core.epoch.access == Access::Lock && memory == Memory::Mapped) return false;
    const strategy::Strategy* const strategy = core.strategies.of_epoch(core);
    return strategy != nullptr && strategy->allows_batches();
}

void end(Run& run) {
    run.is_long = run.length >= kLong;
    run.length = 0;
}

// Ends the run before, if a synchronisation call has come since.
void note_order(Core& core) {
    Run& run = core.run;
    const std::uint32_t order = core.order.load(std::memory_order_relaxed);
    if (order == run.order) return;
    run.order = order;
    if (run.length != 0) end(run);  // else end_run() has come in between
}

// Takes a target out of the run, and opens it for the fast paths again.
void reopen(Target& target) {
    target.unmapped_run = false;
    if (std::exchange(target.batched, false)) target.allow();
}

// One more operation of the run; whether it is long now.
bool lengthen(Run& run) {
    if (++run.length >= kLong) run.is_long = true;
    return run.is_long;
}

// Makes the batch ready for one more operation.
shm::Batch& ready_batch(Core& core, Target& target) {
    Run& run = core.run;
    if (run.batch == nullptr)
        run.batch = std::make_unique<shm::Batch>(core.me, core.controls.local_count(core.size), core.members);
    if (run.batch->is_empty()) {
        core.incomplete.fetch_add(1, std::memory_order_relaxed);
        mark_incomplete(core, target);
    }
    return *run.batch;
}

// The same, and closes the target for the fast paths.
shm::Batch& begin(Core& core, Target& target) {
    if (!target.batched) {
        target.close();
        target.batched = true;
    }
    return ready_batch(core, target);
}

// The same for memory that the fast paths do not reach. The fast unlock must not pass by the batch.
shm::Batch& begin_unmapped(Core& core, Target& target) {
    target.unmapped_run = true;
    if (target.held_lock == HeldLock::Exclusive) mark_incomplete(core, target);
    return ready_batch(core, target);
}

// The key of an element's stripe for shm::Batch::add(): processes of other nodes have no stripes here.
std::size_t batch_key(const Target& target, std::uint64_t offset) {
    return target.local_index * shm::kStripes + shm::ControlBlock::stripe_number(offset);
}

// Whether a batch can take an update: one element, with an operand that fits.
bool is_batchable(const op::Simple& what) {
    if (what.bytes != what.how->width || what.bytes > sizeof(shm::Operands::origin)) return false;
    return what.kind == op::OpKind::Accumulate ||
           (what.kind == op::OpKind::CompareAndSwap && what.bytes >= sizeof(std::uint32_t));
}

// Whether the update alone gains nothing from a batch of mapped elements: the fast paths perform it.
bool is_quick(const op::Simple& what) {
    if (what.kind == op::OpKind::CompareAndSwap) return true;
    if (what.how->op != Op::Sum && what.how->op != Op::Replace) return false;
    switch (what.how->basic) {
        case Basic::I32:
        case Basic::U32:
        case Basic::I64:
        case Basic::U64:
        case Basic::F64:
            return true;
        default:
            return false;
    }
}

shm::ElementUpdate element_at(std::byte* here, const op::Simple& what) {
    shm::ElementUpdate element{here, what.how->apply, {0, 0, what.result}};
    shm::move_bytes(&element.operands.origin, what.origin, what.bytes);
    if (what.kind != op::OpKind::CompareAndSwap) return element;
    shm::move_bytes(&element.operands.compare, what.how->compare, what.bytes);
    element.apply = what.bytes == sizeof(std::uint64_t) ? &shm::swap<std::uint64_t> : &shm::swap<std::uint32_t>;
    return element;
}

// Whether the next update of a mapped element joins the run that goes on. Most of a long run end here.
bool goes_on(const Core& core, const Target& target) {
    const Run& run = core.run;
    return target.batched && run.is_long && run.order == core.order.load(std::memory_order_relaxed) &&
           run.batch != nullptr && !run.batch->is_empty();
}

// The same for one with which a run begins, or ends. A long run takes quick updates of its targets along.
bool joins(Core& core, Target& target, const op::Simple& what) {
    if (!target.batched && (is_quick(what) || target.fast_limit.load(std::memory_order_relaxed) == 0)) return false;
    if (!may_batch(core, Memory::Mapped)) return false;
    note_order(core);
    if (target.batched && !core.run.is_long) {
        reopen(target);
        if (is_quick(what)) return false;
    }
    return lengthen(core.run);
}

// Updates at `here`, `offset` bytes from displacement 0. False if the elements lie in several stripes, or if the
// stripe's holder died: the general path finds that again, and reports it.
[[gnu::noinline]] bool update(Core& core, const Target& target, const op::Simple& what, std::byte* here,
                              std::uint64_t offset) {
    const std::size_t count = what.bytes / what.how->width;
    if (shm::count_in_chunk(offset, what.how->width, count) != count) return false;
    const auto at = static_cast<std::int64_t>(offset);
    shm::Direct memory(here, {target.control(), core.me, core.members}, at);
    memory.update(*what.how, at, what.origin, what.result, count);
    return memory.finish() == Fault::None;
}

// The same for every kind of operation, if the target is open.
[[gnu::always_inline]] inline bool perform(Core& core, const Target& target, const op::Simple& what, std::byte* here,
                                           std::uint64_t offset) {
    if (target.fast_limit.load(std::memory_order_acquire) == 0) return false;
    if (what.kind == op::OpKind::Put)
        shm::move_bytes(here, what.origin, what.bytes);
    else if (what.kind == op::OpKind::Get)
        shm::move_bytes(what.result, here, what.bytes);
    else
        return update(core, target, what, here, offset);
    return true;
}

// On memory within the target's limit.
[[gnu::noinline]] bool try_mapped(Core& core, Target& target, const op::Simple& what, std::uint64_t offset) {
    std::byte* const here = target.base + offset;
    stats::t_path = stats::DataPath::LoadStore;
    if (!what.is_transfer() && is_batchable(what)) {
        if (__builtin_expect(goes_on(core, target), 1)) {
            core.run.batch->add(target.control().stripe_of(offset), batch_key(target, offset), element_at(here, what));
            ++core.run.length;
            return true;
        }
        if (joins(core, target, what)) {
            begin(core, target)
                .add(target.control().stripe_of(offset), batch_key(target, offset), element_at(here, what));
            return true;
        }
    }
    return perform(core, target, what, here, offset);
}

// On memory that only process_vm_* reaches: in a long run. Operations of a short one take the general path.
[[gnu::noinline]] bool try_unmapped(Core& core, Target& target, const op::Simple& what, const reach::Place& place) {
    const bool is_put = what.kind == op::OpKind::Put;
    const bool fits =
        what.is_transfer() ? what.bytes <= (is_put ? cma::Moves::kMostPut : cma::Moves::kMostGet) : is_batchable(what);
    if (!fits || !may_batch(core, Memory::Unmapped)) return false;
    note_order(core);
    if (target.is_in_run() && !core.run.is_long) reopen(target);
    bool deferred = false;
    if (!target.is_in_run() && (open_target(core, target, &deferred) != Fault::None || deferred)) return false;
    if (!lengthen(core.run)) return false;
    stats::t_path = stats::DataPath::ProcessVm;
    shm::Batch& batch = begin_unmapped(core, target);
    if (what.is_transfer()) {
        cma::Moves& moves = batch.moves_of(place.pid);
        if (is_put)
            moves.put(place.address, what.origin, what.bytes);
        else
            moves.get(place.address, what.result, what.bytes);
    } else {
        batch.add_unmapped(target.control().stripe_of(place.offset), batch_key(target, place.offset),
                           {place.pid, static_cast<unsigned>(what.bytes)},
                           element_at(reinterpret_cast<std::byte*>(place.address), what));
    }
    return true;
}

bool try_send(Core& core, Target& target, const op::Simple& what) {
    if (what.bytes > kMostRecord) return false;
    {
        const StateGuard guard(core);
        if (!is_prepared(core, target)) return false;
    }
    if (!core.reach(target).send(target, what, core.threaded)) return false;
    // With other threads a flush may be about to make this target flushable.
    if (core.threaded || core.flushable.load(std::memory_order_relaxed) != 0) mark_incomplete(core, target);
    return true;
}

}  // namespace

bool try_simple(Core& core, int rank, const op::Simple& what) {
    if (static_cast<std::uint32_t>(rank) >= core.size) return false;
    Target& target = core.targets[rank];
    if (target.block.load(std::memory_order_acquire) == nullptr) return false;
    if (core.provider_atomics && !what.is_transfer()) return false;
    std::uint64_t offset = 0;
    if (target.contains(what.disp, static_cast<std::int64_t>(what.bytes), target.full_limit, offset))
        return try_mapped(core, target, what, offset);
    if (is_remote(target.way)) return try_send(core, target, what);
    reach::Place place;
    if (!core.reach(target).find(target, what.disp, what.bytes, place)) return false;
    if (place.here == nullptr) return try_unmapped(core, target, what, place);
    // The place may change with every new copy of the target's regions, so a batch does not keep it.
    stats::t_path = stats::DataPath::LoadStore;
    return perform(core, target, what, place.here, place.offset);
}

void end_run(Core& core) {
    core.perform_batch();
    end(core.run);
}

void leave_batch(Core& core, Target& target) {
    core.perform_batch();
    core.run.length = 0;
    core.run.is_long = false;
    reopen(target);
}

}  // namespace osc::epoch
