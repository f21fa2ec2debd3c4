"""The errors that the library osc_faulty can make on purpose, by which tests show that they would find them. The environment
variable OSC_TEST_FAULT chooses one of FAULTS. insert.py makes the edits in a copy of src, one after another in the order of
this table; OSC_FAULT(name) and the functions of namespace faults are in inject.h."""
import typing


class Edit(typing.NamedTuple):
    """One replacement in a file of src. The text occurs there once."""
    file: str
    text: str
    replacement: str


class Fault(typing.NamedTuple):
    name: str
    what: str  # goes wrong
    edits: list


def before(file, text, statement):
    return Edit(file, text, f"{statement}\n{text}")


def after(file, text, statement):
    return Edit(file, text, f"{text}\n{statement}")


DIRECT = "local/direct.cpp"
DIRECTLY = "change(how, at(disp) + skip,"
CHANGE = "op/transport.h"  # change(), by which every way to memory updates elements
APPLY = "op::run_aligned(replaces ? how.copy : how.apply, target, origin, count, how.width);"


def postponed(name):
    """A put of adjacent bytes comes later."""
    put = "op::copy(*t.layout, t.count, there,"
    return Edit("reach/mapped.cpp", put, f"OSC_FAULT({name}) && t.layout->contiguous() && o.layout->contiguous() ? "
                f"faults::postpone_put(there, o.base, o.count * o.layout->size()) : {put}")


def unlocked(name, condition):
    """acquire() returns without the lock."""
    return before("core/targets.cpp", "const bool shared = kind == LockKind::Shared;",
                  f"if (OSC_FAULT({name}) && {condition}) {{ target.held_lock = HeldLock::NoCheck; return Fault::None; }}")


FAULTS = [
    Fault("drop_put", "a put does nothing", [
        before("reach/reach.cpp", "std::int64_t start = 0;\n    bool nothing = false;",
               "if (OSC_FAULT(drop_put) && call.kind == op::OpKind::Put) return {};")]),
    Fault("drop_accumulate", "an accumulate on mapped memory does nothing", [
        before(DIRECT, DIRECTLY, "if (OSC_FAULT(drop_accumulate) && how.compare == nullptr) return;")]),
    Fault("origin_unit", "the origin's displacement unit is used for the target's", [
        after("window/window.cpp", "target.unit = block.unit;",
              "if (OSC_FAULT(origin_unit)) target.unit = static_cast<std::uint64_t>(unit);")]),
    Fault("lost_atomicity", "accumulates take no stripe lock", [
        before("sync/stripe.h", "std::uint32_t free = 0;", "if (OSC_FAULT(lost_atomicity)) return true;")]),
    Fault("stripe_base", "cross-memory access hashes addresses to other stripes than loads and stores", [
        Edit("local/updates.cpp", "stripe_number(portion.disp)",
             "stripe_number(portion.disp + (OSC_FAULT(stripe_base) ? std::uint64_t{1} << shm::kStripeShift : 0))")]),
    Fault("swap_uncompared", "compare-and-swap stores whatever it finds", [
        Edit(CHANGE, "op::equal(how.basic, target, how.compare);",
             "(OSC_FAULT(swap_uncompared) || op::equal(how.basic, target, how.compare));")]),
    Fault("swap_returns_new", "compare-and-swap returns what is there afterwards", [
        after(CHANGE, APPLY, "if (OSC_FAULT(swap_returns_new) && replaces) how.copy(result, target, 1);")]),
    Fault("fetch_returns_new", "fetching accumulates return what is there afterwards", [
        after(CHANGE, APPLY, "if (OSC_FAULT(fetch_returns_new) && result != nullptr && !replaces)"
                             " how.copy(result, target, count);")]),
    Fault("no_op_unfilled", "the result buffer of MPI_NO_OP is not filled", [
        Edit(CHANGE, "if (result != nullptr) how.copy(",
             "if (result != nullptr && !(OSC_FAULT(no_op_unfilled) && how.op == Op::NoOp)) how.copy(")]),
    Fault("late_put", "a put is done only with the next one, after the flush", [postponed("late_put")]),
    Fault("get_before_put", "a put is done only when the epoch ends, after the gets that follow its flush", [
        postponed("get_before_put")]),
    Fault("request_early", "a request completes before its get has moved the data", [
        before("api/data.cpp", "net::PendingOp asked;", """\
            if (OSC_FAULT(request_early) && kind == op::OpKind::Get && request != nullptr && counter == nullptr &&
                abi::predefined(buffers.origin_type) && abi::predefined(buffers.target_type)) {
                faults::postpone([=, &window] { perform(window, function, kind, buffers, op, nullptr); });
                return host::completed_request(request);
            }""")]),
    Fault("swapped_accumulates", "two accumulates of one origin change their order", [
        before(DIRECT, DIRECTLY, """\
            if (OSC_FAULT(swapped_accumulates) && result == nullptr) {
                const auto data = faults::bytes(static_cast<const std::byte*>(origin) + skip, n * how.width);
                return faults::postpone([=, target = at(disp) + skip] { how.apply(target, data.data(), n); }, true);
            }""")]),
    Fault("exclusive_skipped", "an exclusive lock is not taken", [
        unlocked("exclusive_skipped", "kind == LockKind::Exclusive")]),
    Fault("shared_skipped", "a shared lock is not taken", [unlocked("shared_skipped", "kind == LockKind::Shared")]),
    Fault("lock_order_ignored", "a lock is acquired before one that the process asked for earlier", [
        after("core/lock_order.cpp", "void LockOrder::acquire() {", "if (OSC_FAULT(lock_order_ignored)) return;")]),
    Fault("lock_fast_unordered", "the fast path of MPI_Win_lock does not know of deferred locks", [
        Edit("api/windows.cpp", "may_defer(window->core)) serve_deferred_locks();",
             "may_defer(window->core) && !OSC_FAULT(lock_fast_unordered)) serve_deferred_locks();")]),
    Fault("lock_blocks_process", "locks are deferred although other threads of the program may lock", [
        Edit("core/lock_order.cpp", "if (!core.threaded) return true;",
             "if (!core.threaded || OSC_FAULT(lock_blocks_process)) return true;")]),
    Fault("lock_all_skipped", "lock_all takes no locks", [
        unlocked("lock_all_skipped", "core.epoch.access == Access::LockAll")]),
    Fault("fence_unsynchronised", "a fence does not wait", [
        Edit("core/fence.cpp", "nothing = call.is_empty()",
             "nothing = OSC_FAULT(fence_unsynchronised) || call.is_empty()")]),
    Fault("opening_fence_skipped", "no process awaits a fence with MPI_MODE_NOPRECEDE", [
        Edit("core/fence.cpp", "call.is_empty();",
             "call.is_empty() || (OSC_FAULT(opening_fence_skipped) && !call.precedes);")]),
    Fault("post_unawaited", "an origin does not wait for the post", [
        Edit("core/targets.cpp", "target.post == Post::Taken) return",
             "target.post == Post::Taken || OSC_FAULT(post_unawaited)) return")]),
    Fault("complete_early", "complete is sent when the epoch starts", [
        before("core/active.cpp", "set_started(core, rank, true);",
               "if (OSC_FAULT(complete_early) && core.is_local(rank)) sync::send_complete(core.controls, rank);"),
        Edit("core/active.cpp", "if (core.is_local(rank)) sync::send_complete(",
             "if (core.is_local(rank) && !OSC_FAULT(complete_early)) sync::send_complete(")]),
    Fault("wait_early", "MPI_Win_wait does not wait for complete", [
        before("core/active.cpp", "const shm::WaitScope waits(shm::WaitKind::Completes,",
               "if (OSC_FAULT(wait_early)) { epoch.posted = false; return Fault::None; }")]),
    Fault("stale_regions", "a target's table of attached regions is read once", [
        Edit("shm/regions.cpp", "if (before == version_)",
             "if (before == version_ || (OSC_FAULT(stale_regions) && regions_ != nullptr))")]),
    Fault("last_region_unseen", "the last attached region is ignored", [
        before("shm/regions.cpp", "if (after == regions.begin()) return nullptr;",
               "if (OSC_FAULT(last_region_unseen) && regions.size() > 1 && after == regions.end()) return nullptr;")]),
    Fault("last_byte_lost", "the last byte of a contiguous put is lost", [
        Edit("op/copy.cpp", "from.first_disp()), 0, bytes, bytes",
             "from.first_disp()), 0, bytes - (OSC_FAULT(last_byte_lost) && bytes != 0), bytes")]),
    Fault("last_element_lost", "the last element of a long accumulate is lost", [
        before(CHANGE, APPLY, "if (OSC_FAULT(last_element_lost) && count > 4) --count;")]),
    Fault("last_block_lost", "the blocks of a run are lost", [
        before("op/copy.cpp", "std::byte* const here = at(base, offset);",
               "if (OSC_FAULT(last_block_lost) && n > 1) return void(done += n * bytes);")]),
    Fault("piece_limit", "pieces of a cross-memory transfer beyond one system call's are lost", [
        before("local/cma.cpp", "if (++count_ == kPieces)",
               "if (OSC_FAULT(piece_limit) && count_ + 1 == kPieces) return;")]),
    Fault("wrong_stride", "the stride of strided pieces is too long by one byte", [
        Edit("op/cursor.h", "left_, run_.stride,", "left_, OSC_FAULT(wrong_stride) ? run_.stride + 1 : run_.stride,")]),
    Fault("padding_overwritten", "accumulates by replacement copy the padding of pairs", [
        before(CHANGE, APPLY, """\
            if (OSC_FAULT(padding_overwritten) && how.op == Op::Replace) {
                __builtin_memcpy(target, origin, count * how.width);
                return true;
            }""")]),
    Fault("tie_keeps_index", "MINLOC and MAXLOC keep the target's index at a tie", [
        before(CHANGE, APPLY, """\
            if (OSC_FAULT(tie_keeps_index) && (how.op == Op::Minloc || how.op == Op::Maxloc)) {
                for (std::size_t at = 0; at < count * how.width; at += how.width) {
                    auto* const element = static_cast<std::byte*>(target) + at;
                    const auto* const from = static_cast<const std::byte*>(origin) + at;
                    if (__builtin_memcmp(element, from, op::data_runs(how.basic).run[0].size) != 0) how.apply(element, from, 1);
                }
                return true;
            }""")]),
    Fault("extent_ignored", "the extent given to MPI_Type_create_resized is ignored", [
        before("op/layout.cpp", "layout.data_ = Shape(std::exchange(data_, {}), extent);",
               "if (OSC_FAULT(extent_ignored)) extent = static_cast<std::ptrdiff_t>(Shape(data_, extent).true_extent());")]),
    Fault("negative_bound_ignored", "data before a datatype's origin is moved to the origin", [
        before("op/layout.cpp", "layout.data_ = Shape(std::exchange(data_, {}), extent);", """\
            if (OSC_FAULT(negative_bound_ignored))
                for (Run& run : data_.runs) run.disp = std::max<std::ptrdiff_t>(run.disp, 0);""")]),
    Fault("result_layout_ignored", "results are left adjacent whatever the result datatype says", [
        after("op/call.cpp", "void spread() {", "if (OSC_FAULT(result_layout_ignored) && copy_ != nullptr)"
                             " return copy_element_(operand_.base, copy_.get(), elements_);")]),
]

# Most faults are in the general path. Once a fault is chosen, that path performs every operation.
GENERAL_PATH = [
    Edit("api/data_fast.h", "return target->contains(", "return !OSC_FAULT_ANY && target->contains("),
    Edit("api/data_fast.cpp", "return epoch::opens(", "return !OSC_FAULT_ANY && epoch::opens("),
    before("core/operation.cpp", "if (static_cast<std::uint32_t>(rank) >= core.size) return false;",
           "if (OSC_FAULT_ANY) return false;"),
    after("net/target/executor.cpp", "bool is_small(const ExposedWindow& window, const Record& record) {",
          "if (OSC_FAULT_ANY) return false;"),
]

# Each synchronisation call performs the operations that a fault has postponed.
SYNCHRONISATION = [
    Edit("api/sync.cpp", 'shm::t_call = "MPI_" #name;', 'shm::t_call = "MPI_" #name; faults::synchronise(#name);'),
]


def edits():
    """(name of the fault, edit) in the order in which they are made."""
    for fault in FAULTS:
        for edit in fault.edits:
            yield fault.name, edit
    for edit in GENERAL_PATH:
        yield "any fault", edit
    for edit in SYNCHRONISATION:
        yield "postponed operations", edit
