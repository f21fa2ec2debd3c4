// The fast paths of the operations without a request; all other calls use their general forms (data.h).
// A fast path is a row of checks that hardly ever fail: a branch each is shorter than computing with flags.
// Build: osc --param=logical-op-non-short-circuit=0
#include "api/data_fast.h"

#include "api/data.h"
#include "core/epoch.h"

namespace osc {
namespace {

using namespace fast;

#define OSC_TRY_PUT_ARGUMENTS \
    origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype

// How an accumulate of a type without gaps changes an element; `apply` is null if the general path must decide. A
// program that updates many elements asks for the same again and again.
const Update& update_of(MPI_Datatype type, MPI_Op op) {
    struct Asked {
        abi::HandleKey type = 0;  // no handle has it
        abi::HandleKey op = 0;
        Update how{};
    };
    [[gnu::tls_model("initial-exec")]] static thread_local constinit Asked last;
    const abi::HandleKey type_key = abi::handle_key(type);
    const abi::HandleKey op_key = abi::handle_key(op);
    if (OSC_LIKELY(last.type == type_key && last.op == op_key)) return last.how;
    const Basic basic = abi::plain_basic(type);
    const Op known = op_of(op);
    last = {type_key, op_key, {}};
    if (basic != Basic::None && known != Op::None)
        last.how = {basic, known, op::kernel(known, basic), op::kernel(Op::Replace, basic), op::element_size(basic)};
    return last.how;
}

// Without memory the general path must decide, which then reports that.
template <class F>
[[gnu::always_inline]] inline bool try_it(F&& call) {
    try {
        return call();
    } catch (const std::bad_alloc&) {
        return false;
    }
}

// The same as try_update() for a put or get. Inlined, because a call would cost as much as the rest.
[[gnu::always_inline]] inline bool try_transfer(Window* window, op::OpKind kind, const void* origin, void* result,
                                                int count, MPI_Datatype type, int rank, MPI_Aint disp,
                                                bool has_request = false) {
    const std::int64_t bytes = abi::plain_size(type) * count;
    if (window == nullptr || count <= 0 || bytes <= 0) return false;
    return try_it([&] {
        return epoch::try_simple(window->core, rank,
                                 {.kind = kind,
                                  .bytes = static_cast<std::uint64_t>(bytes),
                                  .disp = disp,
                                  .origin = origin,
                                  .result = result,
                                  .has_request = has_request});
    });
}

// The same for a compare and swap.
bool try_swap(Window* window, Basic basic, int rank, MPI_Aint disp, const void* origin, const void* compare,
              void* result) {
    if (window == nullptr || basic == Basic::None || !op::admits_compare(basic)) return false;
    const Update how{basic, Op::None, nullptr, op::kernel(Op::Replace, basic), op::element_size(basic), compare};
    return try_it([&] {
        return epoch::try_simple(window->core, rank,
                                 {op::OpKind::CompareAndSwap, how.width, disp, origin, result, &how});
    });
}

}  // namespace

bool opens(Window* window, int rank) {
    if (window == nullptr) return false;
    return try_it([&] { return epoch::opens(window->core, static_cast<std::uint32_t>(rank)); });
}

bool try_requested(Window* window, op::OpKind kind, const void* origin, void* result, int count, MPI_Datatype type,
                   int rank, MPI_Aint disp) {
    return try_transfer(window, kind, origin, result, count, type, rank, disp, true);
}

bool try_update(Window* window, op::OpKind kind, const void* origin, void* result, int count, MPI_Datatype type,
                MPI_Op op, int rank, MPI_Aint disp, bool has_request) {
    if (window == nullptr || count <= 0) return false;
    const Update how = update_of(type, op);  // a copy: a call that waits may run others of this thread
    if (how.apply == nullptr) return false;
    if (how.op == Op::NoOp) {
        if (kind == op::OpKind::Accumulate) return false;  // an error
        origin = nullptr;
    }
    const std::uint64_t bytes = how.width * static_cast<std::uint64_t>(count);
    return try_it([&] {
        return epoch::try_simple(window->core, rank, {kind, bytes, disp, origin, result, &how, has_request});
    });
}

namespace slow {

// The slow paths of a put or get with one datatype and count on both sides. Their six arguments stay in registers.
[[gnu::noinline]] int put_same(const void* origin_addr, int count, MPI_Datatype type, int target_rank,
                               MPI_Aint target_disp, MPI_Win win) {
    Window* const window = find_front(win);
    if (try_transfer(window, op::OpKind::Put, origin_addr, nullptr, count, type, target_rank, target_disp)) {
        count_served(Entry::Put);
        return MPI_SUCCESS;
    }
    const bool again = opens(window, target_rank);
    return (again ? entry::Put : Put)(origin_addr, count, type, target_rank, target_disp, count, type, win);
}

[[gnu::noinline]] int get_same(void* origin_addr, int count, MPI_Datatype type, int target_rank, MPI_Aint target_disp,
                               MPI_Win win) {
    Window* const window = find_front(win);
    if (try_transfer(window, op::OpKind::Get, nullptr, origin_addr, count, type, target_rank, target_disp)) {
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

// An accumulate with one datatype and count on both sides.
[[gnu::noinline]] int accumulate_same(const void* origin_addr, int count, MPI_Datatype type, int target_rank,
                                      MPI_Aint target_disp, MPI_Op op, MPI_Win win) {
    Window* const window = find_front(win);
    const bool done =
        (count != 1 && quick_any<false>(type, window, count, target_rank, target_disp, op, origin_addr, nullptr)) ||
        try_update(window, op::OpKind::Accumulate, origin_addr, nullptr, count, type, op, target_rank, target_disp);
    if (!done) {
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
    if (!quick_update<true>(datatype, window, target_rank, target_disp, op, origin_addr, result_addr) &&
        !try_update(window, op::OpKind::GetAccumulate, origin_addr, result_addr, 1, datatype, op, target_rank,
                    target_disp)) {
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
    Window* const window = find_front(win);
    const Basic basic = abi::plain_basic(datatype);
    const bool narrow = basic == Basic::I32 || basic == Basic::U32;
    const bool done = (narrow && quick_swap<std::uint32_t>(window, target_rank, target_disp, origin_addr, compare_addr,
                                                           result_addr)) ||
                      try_swap(window, basic, target_rank, target_disp, origin_addr, compare_addr, result_addr);
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
        return slow::accumulate_same(origin_addr, origin_count, origin_datatype, target_rank, target_disp, op, win);
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
