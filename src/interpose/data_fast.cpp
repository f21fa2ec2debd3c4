// The fast paths of the operations without a request that return at most one element; all other calls use perform().
#include "interpose/data_fast.h"

#include "epoch/epoch.h"
#include "epoch/updates.h"
#include "interpose/data.h"
#include "interpose/data_short.h"

namespace osc {
namespace {

using namespace fast;

#define OSC_TRY_PUT_ARGUMENTS \
    origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype

}  // namespace

bool opens(Window* window, int rank) {
    if (window == nullptr) return false;
    return epoch::opens(*window, static_cast<std::uint32_t>(rank));
}

namespace slow {

// The general forms of the calls. They have the same arguments, so that the fast path ends in a jump to them.

[[gnu::noinline]] int Put(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,
                          MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Win win) {
    Window* const window = find_window(win);
    if (window == nullptr) OSC_FORWARD_ON(win, Put, (OSC_TRY_PUT_ARGUMENTS, win));
    count_served(Entry::Put);
    return perform(*window, "MPI_Put", op::OpKind::Put,
                   {const_cast<void*>(origin_addr), origin_count, origin_datatype, nullptr, 0, MPI_DATATYPE_NULL,
                    nullptr, target_rank, target_disp, target_count, target_datatype});
}

[[gnu::noinline]] int Get(void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,
                          MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Win win) {
    Window* const window = find_window(win);
    if (window == nullptr) OSC_FORWARD_ON(win, Get, (OSC_TRY_PUT_ARGUMENTS, win));
    count_served(Entry::Get);
    return perform(*window, "MPI_Get", op::OpKind::Get,
                   {origin_addr, origin_count, origin_datatype, nullptr, 0, MPI_DATATYPE_NULL, nullptr, target_rank,
                    target_disp, target_count, target_datatype});
}

[[gnu::noinline]] int Accumulate(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype,
                                 int target_rank, MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype,
                                 MPI_Op op, MPI_Win win) {
    Window* const window = find_window(win);
    if (window == nullptr) OSC_FORWARD_ON(win, Accumulate, (OSC_TRY_PUT_ARGUMENTS, op, win));
    count_served(Entry::Accumulate);
    return perform(*window, "MPI_Accumulate", op::OpKind::Accumulate,
                   {const_cast<void*>(origin_addr), origin_count, origin_datatype, nullptr, 0, MPI_DATATYPE_NULL,
                    nullptr, target_rank, target_disp, target_count, target_datatype},
                   op);
}

[[gnu::noinline]] int Fetch_and_op(const void* origin_addr, void* result_addr, MPI_Datatype datatype, int target_rank,
                                   MPI_Aint target_disp, MPI_Op op, MPI_Win win) {
    Window* const window = find_window(win);
    if (window == nullptr)
        OSC_FORWARD_ON(win, Fetch_and_op, (origin_addr, result_addr, datatype, target_rank, target_disp, op, win));
    count_served(Entry::Fetch_and_op);
    return perform_element(*window, "MPI_Fetch_and_op", op::OpKind::GetAccumulate,
                           {const_cast<void*>(origin_addr), 1, datatype, result_addr, 1, datatype, nullptr, target_rank,
                            target_disp, 1, datatype},
                           op);
}

[[gnu::noinline]] int Compare_and_swap(const void* origin_addr, const void* compare_addr, void* result_addr,
                                       MPI_Datatype datatype, int target_rank, MPI_Aint target_disp, MPI_Win win) {
    Window* const window = find_window(win);
    if (window == nullptr)
        OSC_FORWARD_ON(win, Compare_and_swap,
                       (origin_addr, compare_addr, result_addr, datatype, target_rank, target_disp, win));
    count_served(Entry::Compare_and_swap);
    return perform_element(*window, "MPI_Compare_and_swap", op::OpKind::CompareAndSwap,
                           {const_cast<void*>(origin_addr), 1, datatype, result_addr, 1, datatype, compare_addr,
                            target_rank, target_disp, 1, datatype});
}

// Batches a put or get in a run of operations on memory that is not mapped here (epoch/updates.h).
bool move_in_run(Window* window, void* here, int count, MPI_Datatype type, int rank, MPI_Aint disp, bool is_put) {
    const Basic basic = abi::plain_basic(type);
    if (window == nullptr || basic == Basic::None || count <= 0) return false;
    const std::size_t width = op::element_size(basic);
    const epoch::SmallMove move{here, width * static_cast<std::uint64_t>(count), is_put};
    return op::significant_size(basic) == width && epoch::may_move(*window, rank, move) &&
           epoch::try_move(*window, static_cast<std::uint32_t>(rank), disp, move);
}

// The slow paths of a put or get with one datatype and count on both sides. Their six arguments stay in registers.
[[gnu::noinline]] int put_same(const void* origin_addr, int count, MPI_Datatype type, int target_rank,
                               MPI_Aint target_disp, MPI_Win win) {
    Window* const window = find_front(win);
    const short_path::Target target{window, target_rank, target_disp};
    if (short_path::put(target, origin_addr, count, type) ||
        move_in_run(window, const_cast<void*>(origin_addr), count, type, target_rank, target_disp, true)) {
        count_served(Entry::Put);
        return MPI_SUCCESS;
    }
    const bool again = opens(window, target_rank);
    return (again ? entry::Put : Put)(origin_addr, count, type, target_rank, target_disp, count, type, win);
}

[[gnu::noinline]] int get_same(void* origin_addr, int count, MPI_Datatype type, int target_rank, MPI_Aint target_disp,
                               MPI_Win win) {
    Window* const window = find_front(win);
    const short_path::Target target{window, target_rank, target_disp};
    if (short_path::get(target, origin_addr, count, type) ||
        move_in_run(window, origin_addr, count, type, target_rank, target_disp, false)) {
        count_served(Entry::Get);
        return MPI_SUCCESS;
    }
    const bool again = opens(window, target_rank);
    return (again ? entry::Get : Get)(origin_addr, count, type, target_rank, target_disp, count, type, win);
}

// One-element updates of the remaining types and operations that need no table of kernels.
template <bool kFetch>
bool quick_update(MPI_Datatype type, Window* window, int rank, MPI_Aint disp, MPI_Op op, const void* origin,
                  void* result) {
    switch (abi::plain_basic(type)) {
        case Basic::I64:
        case Basic::U64:
            return fast::quick_update<std::uint64_t, kFetch>(window, rank, disp, op, origin, result);
        case Basic::I32:
        case Basic::U32:
            return fast::quick_update<std::uint32_t, kFetch>(window, rank, disp, op, origin, result);
        case Basic::F64:
            return fast::quick_update<double, kFetch>(window, rank, disp, op, origin, result);
        default:
            return false;
    }
}

// The kernel of an update of one element that may be batched; null if there is none, also for wrong arguments.
struct SmallKernel {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Op op = MPI_OP_NULL;
    op::Kernel kernel = nullptr;
    unsigned width = 0;
    bool is_quick = false;
};
SmallKernel small_kernel(MPI_Datatype type, MPI_Op op) {
    const Basic basic = abi::plain_basic(type);
    const Op known = op_of(op);
    if (basic == Basic::None || known == Op::None || known == Op::NoOp) return {};
    const std::size_t width = op::element_size(basic);
    if (width > sizeof(std::uint64_t) || op::significant_size(basic) != width) return {};
    const bool quick_type =
        basic == Basic::I64 || basic == Basic::U64 || basic == Basic::I32 || basic == Basic::U32 || basic == Basic::F64;
    return {type, op, op::kernel(known, basic), static_cast<unsigned>(width), quick_type && is_quick<false>(op)};
}

// Accumulates one element in a run of updates (epoch/updates.h), or says which path must.
enum class InRun { Done, Fast, General };
InRun accumulate_in_run(Window& window, const void* origin, MPI_Datatype type, int rank, MPI_Aint disp, MPI_Op op) {
    static SmallKernel cache;  // of the one thread that may call at a time below MPI_THREAD_MULTIPLE
    SmallKernel local;
    SmallKernel& last = OSC_LIKELY(!window.threaded) ? cache : local;
    if (!OSC_LIKELY(last.type == type && last.op == op)) last = small_kernel(type, op);
    if (last.kernel == nullptr || !epoch::may_update(window, rank, last.is_quick)) return InRun::Fast;
    epoch::SmallUpdate update{last.kernel, last.width, last.is_quick, {}};
    if (OSC_LIKELY(last.width == sizeof update.operands.origin))
        update.operands.origin = load<std::uint64_t>(origin);
    else
        __builtin_memcpy(&update.operands.origin, origin, last.width);
    const auto target = static_cast<std::uint32_t>(rank);
    if (OSC_LIKELY(epoch::try_add(window, target, disp, update))) return InRun::Done;
    if (epoch::try_update(window, target, disp, update)) return InRun::Done;
    return last.is_quick ? InRun::Fast : InRun::General;
}

// The same for MPI_Compare_and_swap.
template <class T>
bool swap_in_run(Window* window, const void* origin, const void* compare, void* result, int rank, MPI_Aint disp) {
    if (window == nullptr || !epoch::may_update(*window, rank, true)) return false;
    epoch::SmallUpdate update{&shm::swap<T>, sizeof(T), true, {0, 0, result}};
    __builtin_memcpy(&update.operands.origin, origin, sizeof(T));
    __builtin_memcpy(&update.operands.compare, compare, sizeof(T));
    const auto target = static_cast<std::uint32_t>(rank);
    return epoch::try_add(*window, target, disp, update) || epoch::try_update(*window, target, disp, update);
}

// The same for a row of elements.
[[gnu::noinline]] int accumulate_row(const void* origin_addr, int count, MPI_Datatype type, int target_rank,
                                     MPI_Aint target_disp, MPI_Op op, MPI_Win win) {
    Window* const window = find_front(win);
    const short_path::Target target{window, target_rank, target_disp};
    if (short_path::accumulate(target, origin_addr, count, type, op)) {
        count_served(Entry::Accumulate);
        return MPI_SUCCESS;
    }
    const InRun in_run = count == 1 && window != nullptr
                             ? accumulate_in_run(*window, origin_addr, type, target_rank, target_disp, op)
                             : InRun::Fast;
    if (in_run == InRun::General)
        return Accumulate(origin_addr, count, type, target_rank, target_disp, count, type, op, win);
    if (in_run == InRun::Fast &&
        !quick_any<false>(type, window, count, target_rank, target_disp, op, origin_addr, nullptr)) {
        const bool again = opens(window, target_rank);
        return (again ? entry::Accumulate : Accumulate)(origin_addr, count, type, target_rank, target_disp, count, type,
                                                        op, win);
    }
    return succeed(Entry::Accumulate);
}

[[gnu::noinline]] int fetch_any(const void* origin_addr, void* result_addr, MPI_Datatype datatype, int target_rank,
                                MPI_Aint target_disp, MPI_Op op, MPI_Win win) {
    if (!has_operands(origin_addr, result_addr, op))
        return Fetch_and_op(origin_addr, result_addr, datatype, target_rank, target_disp, op, win);
    Window* const window = find_front(win);
    const short_path::Target target{window, target_rank, target_disp};
    if (!short_path::fetch(target, origin_addr, result_addr, 1, datatype, op) &&
        !quick_update<true>(datatype, window, target_rank, target_disp, op, origin_addr, result_addr)) {
        const bool again = opens(window, target_rank);
        return (again ? entry::Fetch_and_op : Fetch_and_op)(origin_addr, result_addr, datatype, target_rank,
                                                            target_disp, op, win);
    }
    return succeed(Entry::Fetch_and_op);
}

[[gnu::noinline]] int swap_any(const void* origin_addr, const void* compare_addr, void* result_addr,
                               MPI_Datatype datatype, int target_rank, MPI_Aint target_disp, MPI_Win win) {
    if (origin_addr == nullptr || compare_addr == nullptr || result_addr == nullptr)
        return Compare_and_swap(origin_addr, compare_addr, result_addr, datatype, target_rank, target_disp, win);
    const Basic basic = abi::plain_basic(datatype);
    Window* const window = find_front(win);
    const bool narrow = basic == Basic::I32 || basic == Basic::U32;
    const bool wide = basic == Basic::I64 || basic == Basic::U64;
    const short_path::Target target{window, target_rank, target_disp};
    const bool done =
        short_path::compare_and_swap(target, origin_addr, compare_addr, result_addr, datatype) ||
        (narrow
             ? quick_swap<std::uint32_t>(window, target_rank, target_disp, origin_addr, compare_addr, result_addr) ||
                   swap_in_run<std::uint32_t>(window, origin_addr, compare_addr, result_addr, target_rank, target_disp)
             : wide && swap_in_run<std::uint64_t>(window, origin_addr, compare_addr, result_addr, target_rank,
                                                  target_disp));
    if (!done) {
        const bool again = opens(window, target_rank);
        return (again ? entry::Compare_and_swap : Compare_and_swap)(origin_addr, compare_addr, result_addr, datatype,
                                                                    target_rank, target_disp, win);
    }
    return succeed(Entry::Compare_and_swap);
}

}  // namespace slow

namespace entry {

int Put(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
        int target_count, MPI_Datatype target_datatype, MPI_Win win) {
    if (!OSC_LIKELY(origin_count == target_count)) return slow::Put(OSC_TRY_PUT_ARGUMENTS, win);
    if (!OSC_LIKELY(origin_datatype == target_datatype)) return slow::Put(OSC_TRY_PUT_ARGUMENTS, win);
    if (!OSC_LIKELY(origin_addr != nullptr)) return slow::Put(OSC_TRY_PUT_ARGUMENTS, win);
    std::uint64_t bytes = 0;
    std::byte* target = nullptr;
    if (!OSC_LIKELY(
            fast_transfer(find_front(win), origin_count, origin_datatype, target_rank, target_disp, target, bytes)))
        return slow::put_same(origin_addr, origin_count, origin_datatype, target_rank, target_disp, win);
    return move_and_succeed<Entry::Put>(target, origin_addr, bytes);
}

int Get(void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
        int target_count, MPI_Datatype target_datatype, MPI_Win win) {
    if (!OSC_LIKELY(origin_count == target_count)) return slow::Get(OSC_TRY_PUT_ARGUMENTS, win);
    if (!OSC_LIKELY(origin_datatype == target_datatype)) return slow::Get(OSC_TRY_PUT_ARGUMENTS, win);
    if (!OSC_LIKELY(origin_addr != nullptr)) return slow::Get(OSC_TRY_PUT_ARGUMENTS, win);
    std::uint64_t bytes = 0;
    std::byte* target = nullptr;
    if (!OSC_LIKELY(
            fast_transfer(find_front(win), origin_count, origin_datatype, target_rank, target_disp, target, bytes)))
        return slow::get_same(origin_addr, origin_count, origin_datatype, target_rank, target_disp, win);
    return move_and_succeed<Entry::Get>(origin_addr, target, bytes);
}

int Accumulate(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,
               MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win) {
    if (!OSC_LIKELY(target_count == origin_count && origin_datatype == target_datatype) ||
        !OSC_LIKELY(origin_addr != nullptr))
        return slow::Accumulate(OSC_TRY_PUT_ARGUMENTS, op, win);
    if (!OSC_LIKELY(origin_count == 1 && slow::quick_update<false>(target_datatype, find_front(win), target_rank,
                                                                   target_disp, op, origin_addr, nullptr)))
        return slow::accumulate_row(origin_addr, origin_count, origin_datatype, target_rank, target_disp, op, win);
    return succeed(Entry::Accumulate);
}

int Fetch_and_op(const void* origin_addr, void* result_addr, MPI_Datatype datatype, int target_rank,
                 MPI_Aint target_disp, MPI_Op op, MPI_Win win) {
    bool done = false;
    if (OSC_LIKELY(op == MPI_SUM && abi::plain_integer64(datatype)) &&
        OSC_LIKELY(origin_addr != nullptr && result_addr != nullptr))
        done = quick_update<std::uint64_t, true>(find_front(win), target_rank, target_disp, MPI_SUM, origin_addr,
                                                 result_addr);
    if (!OSC_LIKELY(done))
        return slow::fetch_any(origin_addr, result_addr, datatype, target_rank, target_disp, op, win);
    return succeed(Entry::Fetch_and_op);
}

int Compare_and_swap(const void* origin_addr, const void* compare_addr, void* result_addr, MPI_Datatype datatype,
                     int target_rank, MPI_Aint target_disp, MPI_Win win) {
    if (!OSC_LIKELY(origin_addr != nullptr && compare_addr != nullptr && result_addr != nullptr &&
                    abi::plain_integer64(datatype) &&
                    quick_swap<std::uint64_t>(find_front(win), target_rank, target_disp, origin_addr, compare_addr,
                                              result_addr)))
        return slow::swap_any(origin_addr, compare_addr, result_addr, datatype, target_rank, target_disp, win);
    return succeed(Entry::Compare_and_swap);
}

}  // namespace entry
}  // namespace osc
