// The fast path (invariant I8): a contiguous predefined type, a target whose memory is mapped here, an epoch that is
// open for it. No allocation, no system call, no virtual call, no call of the host; accumulates take one stripe lock.
// Everything else goes to perform().
#include "diag/inject.h"
#include "epoch/epoch.h"
#include "host/datatype.h"
#include "interpose/data.h"
#include "transport/shm/compare.h"
#include "transport/shm/direct.h"

namespace osc {
namespace {

#define OSC_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define OSC_TRY_PUT_ARGUMENTS \
    origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype

// Where `bytes` bytes at `disp` lie in a target that may be accessed now; false if the fast path may not. A negative
// rank, displacement or size is a huge number here and fails its comparison.
inline bool fast_target(Window& window, int rank, MPI_Aint disp, std::uint64_t bytes, Peer*& peer,
                        std::uint64_t& offset) {
    if (OSC_FAULT_ANY) return false;  // faults are built into the general path
    if (!OSC_LIKELY(static_cast<std::uint32_t>(rank) < window.size)) return false;
    peer = &window.peers[static_cast<std::uint32_t>(rank)];
    if (!OSC_LIKELY(shm::below(static_cast<std::uint64_t>(disp), peer->reach))) return false;
    offset = static_cast<std::uint64_t>(disp) * peer->unit;
    return OSC_LIKELY(bytes <= peer->size - offset);
}

// The target of a transfer of `count` elements of a predefined type without gaps.
inline bool fast_transfer(Window* window, int count, MPI_Datatype type, int rank, MPI_Aint disp, std::byte*& target,
                          std::uint64_t& bytes) {
    if (!OSC_LIKELY(window != nullptr)) return false;
    const std::int64_t width = host::plain_size(type);
    if (!OSC_LIKELY(width >= 0)) return false;
    bytes = static_cast<std::uint64_t>(width * count);
    Peer* peer = nullptr;
    std::uint64_t offset = 0;
    if (!OSC_LIKELY(fast_target(*window, rank, disp, bytes, peer, offset))) return false;
    target = peer->base + offset;
    return true;
}

template <class T>
inline T load(const void* from) {
    T value;
    __builtin_memcpy(&value, from, sizeof value);
    return value;
}

template <class T>
inline void store(void* to, T value) {
    __builtin_memcpy(to, &value, sizeof value);
}

// The operations that need no table: what counters, queues and histograms do. MPI_NO_OP is one of those that fetch only
// (MPI 4.1 section 12.3.4).
template <bool kFetch>
inline bool is_quick(MPI_Op op) {
    return op == MPI_SUM || op == MPI_REPLACE || (kFetch && op == MPI_NO_OP);
}

// Calls f(the target's memory at `offset`) under the stripe's lock; false if that is not free, with nothing done.
template <class F>
inline bool under_free_stripe(const Window& window, Peer& peer, std::uint64_t offset, F&& f) {
    std::atomic<std::uint32_t>& stripe = peer.control().stripe_of(offset);
    std::uint32_t free = 0;
    if (!OSC_LIKELY(
            stripe.compare_exchange_strong(free, window.me + 1, std::memory_order_acquire, std::memory_order_relaxed)))
        return false;
    f(peer.base + offset);
    sync::stripe_unlock(stripe);
    return true;
}

// Updates one element of type T under its stripe's lock; false if the fast path may not, with nothing done.
template <class T, bool kFetch>
inline bool quick_update(Window* window, int rank, MPI_Aint disp, MPI_Op op, const void* origin, void* result) {
    if (!OSC_LIKELY(window != nullptr)) return false;
    if (!OSC_LIKELY(is_quick<kFetch>(op))) return false;
    Peer* peer = nullptr;
    std::uint64_t offset = 0;
    if (!OSC_LIKELY(fast_target(*window, rank, disp, sizeof(T), peer, offset))) return false;
    return under_free_stripe(*window, *peer, offset, [&](std::byte* target) {
        const T old = load<T>(target);
        if constexpr (kFetch) store(result, old);
        if (OSC_LIKELY(op == MPI_SUM))
            store<T>(target, static_cast<T>(old + load<T>(origin)));
        else if (op == MPI_REPLACE)
            store(target, load<T>(origin));
    });
}

// Of longer rows the kernels, which use the processor's widest vectors, repay the way to them.
constexpr std::size_t kRowBytes = 2048;

// Updates a row of elements that one stripe's lock guards, likewise.
template <class T>
inline bool quick_row(Window* window, int count, int rank, MPI_Aint disp, MPI_Op op, const void* origin) {
    if (!OSC_LIKELY(window != nullptr && is_quick<false>(op))) return false;
    const auto elements = static_cast<std::size_t>(count);
    if (!OSC_LIKELY(elements - 1 < kRowBytes / sizeof(T))) return false;
    Peer* peer = nullptr;
    std::uint64_t offset = 0;
    if (!OSC_LIKELY(fast_target(*window, rank, disp, elements * sizeof(T), peer, offset))) return false;
    const std::uint64_t last = offset + (elements - 1) * sizeof(T);
    if (!OSC_LIKELY((offset ^ last) >> shm::kStripeShift == 0)) return false;
    return under_free_stripe(*window, *peer, offset, [&](std::byte* target) {
        const auto* from = static_cast<const std::byte*>(origin);
        if (op == MPI_REPLACE) {
            shm::move_bytes(target, from, elements * sizeof(T));
            return;
        }
        for (std::size_t at = 0; at < elements * sizeof(T); at += sizeof(T))
            store<T>(target + at, static_cast<T>(load<T>(target + at) + load<T>(from + at)));
    });
}

// Compares and swaps one element of type T, likewise.
template <class T>
inline bool quick_swap(Window* window, int rank, MPI_Aint disp, const void* origin, const void* compare, void* result) {
    if (!OSC_LIKELY(window != nullptr)) return false;
    Peer* peer = nullptr;
    std::uint64_t offset = 0;
    if (!OSC_LIKELY(fast_target(*window, rank, disp, sizeof(T), peer, offset))) return false;
    return under_free_stripe(*window, *peer, offset, [&](std::byte* target) {
        const T old = load<T>(target);
        if (old == load<T>(compare)) store(target, load<T>(origin));
        store(result, old);
    });
}

}  // namespace

namespace slow {

// The same calls in general. They are functions of the same arguments, so that the fast path ends in a jump to them.

[[gnu::noinline]] int Put(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,
                          MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Win win) {
    Window* const window = find_window(win);
    if (window == nullptr) OSC_FORWARD_ON(win, Put, (OSC_TRY_PUT_ARGUMENTS, win));
    count_served(Entry::Put);
    return perform(*window, "MPI_Put", op::Kind::Put,
                   {const_cast<void*>(origin_addr), origin_count, origin_datatype, nullptr, 0, MPI_DATATYPE_NULL,
                    nullptr, target_rank, target_disp, target_count, target_datatype});
}

[[gnu::noinline]] int Get(void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,
                          MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Win win) {
    Window* const window = find_window(win);
    if (window == nullptr) OSC_FORWARD_ON(win, Get, (OSC_TRY_PUT_ARGUMENTS, win));
    count_served(Entry::Get);
    return perform(*window, "MPI_Get", op::Kind::Get,
                   {origin_addr, origin_count, origin_datatype, nullptr, 0, MPI_DATATYPE_NULL, nullptr, target_rank,
                    target_disp, target_count, target_datatype});
}

[[gnu::noinline]] int Accumulate(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype,
                                 int target_rank, MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype,
                                 MPI_Op op, MPI_Win win) {
    Window* const window = find_window(win);
    if (window == nullptr) OSC_FORWARD_ON(win, Accumulate, (OSC_TRY_PUT_ARGUMENTS, op, win));
    count_served(Entry::Accumulate);
    return perform(*window, "MPI_Accumulate", op::Kind::Accumulate,
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
    return perform_element(*window, "MPI_Fetch_and_op", op::Kind::GetAccumulate,
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
    return perform_element(*window, "MPI_Compare_and_swap", op::Kind::CompareAndSwap,
                           {const_cast<void*>(origin_addr), 1, datatype, result_addr, 1, datatype, compare_addr,
                            target_rank, target_disp, 1, datatype});
}

// The first operation on a target in an epoch opens it, and then takes the fast path like those behind it.
bool opens(Window* window, int rank) {
    return !OSC_FAULT_ANY && window != nullptr && epoch::opens(*window, static_cast<std::uint32_t>(rank));
}

// Where both sides are the same, six arguments say it all: they stay in registers, and the fast path has the rest.
[[gnu::noinline]] int put_same(const void* origin_addr, int count, MPI_Datatype type, int target_rank,
                               MPI_Aint target_disp, MPI_Win win) {
    const bool again = opens(find_front(win), target_rank);
    return (again ? entry::Put : Put)(origin_addr, count, type, target_rank, target_disp, count, type, win);
}

[[gnu::noinline]] int get_same(void* origin_addr, int count, MPI_Datatype type, int target_rank, MPI_Aint target_disp,
                               MPI_Win win) {
    const bool again = opens(find_front(win), target_rank);
    return (again ? entry::Get : Get)(origin_addr, count, type, target_rank, target_disp, count, type, win);
}

// Updates that need no table, of the other types and operations.
template <bool kFetch>
bool quick_update(MPI_Datatype type, Window* window, int rank, MPI_Aint disp, MPI_Op op, const void* origin,
                  void* result) {
    switch (host::plain_basic(type)) {
        case Basic::I64:
        case Basic::U64:
            return osc::quick_update<std::uint64_t, kFetch>(window, rank, disp, op, origin, result);
        case Basic::I32:
        case Basic::U32:
            return osc::quick_update<std::uint32_t, kFetch>(window, rank, disp, op, origin, result);
        case Basic::F64:
            return osc::quick_update<double, kFetch>(window, rank, disp, op, origin, result);
        default:
            return false;
    }
}

// The same of a row of them.
[[gnu::noinline]] int accumulate_row(const void* origin_addr, int count, MPI_Datatype type, int target_rank,
                                     MPI_Aint target_disp, MPI_Op op, MPI_Win win) {
    Window* const window = find_front(win);
    bool done = false;
    switch (host::plain_basic(type)) {
        case Basic::I64:
        case Basic::U64:
            done = quick_row<std::uint64_t>(window, count, target_rank, target_disp, op, origin_addr);
            break;
        case Basic::I32:
        case Basic::U32:
            done = quick_row<std::uint32_t>(window, count, target_rank, target_disp, op, origin_addr);
            break;
        case Basic::F64:
            done = quick_row<double>(window, count, target_rank, target_disp, op, origin_addr);
            break;
        default:
            break;
    }
    if (!done) {
        const bool again = opens(window, target_rank);
        return (again ? entry::Accumulate : Accumulate)(origin_addr, count, type, target_rank, target_disp, count, type,
                                                        op, win);
    }
    count_served(Entry::Accumulate);
    return MPI_SUCCESS;
}

[[gnu::noinline]] int fetch_any(const void* origin_addr, void* result_addr, MPI_Datatype datatype, int target_rank,
                                MPI_Aint target_disp, MPI_Op op, MPI_Win win) {
    Window* const window = find_front(win);
    if (!quick_update<true>(datatype, window, target_rank, target_disp, op, origin_addr, result_addr)) {
        const bool again = opens(window, target_rank);
        return (again ? entry::Fetch_and_op : Fetch_and_op)(origin_addr, result_addr, datatype, target_rank,
                                                            target_disp, op, win);
    }
    count_served(Entry::Fetch_and_op);
    return MPI_SUCCESS;
}

[[gnu::noinline]] int swap_any(const void* origin_addr, const void* compare_addr, void* result_addr,
                               MPI_Datatype datatype, int target_rank, MPI_Aint target_disp, MPI_Win win) {
    const Basic basic = host::plain_basic(datatype);
    Window* const window = find_front(win);
    if ((basic != Basic::I32 && basic != Basic::U32) ||
        !quick_swap<std::uint32_t>(window, target_rank, target_disp, origin_addr, compare_addr, result_addr)) {
        const bool again = opens(window, target_rank);
        return (again ? entry::Compare_and_swap : Compare_and_swap)(origin_addr, compare_addr, result_addr, datatype,
                                                                    target_rank, target_disp, win);
    }
    count_served(Entry::Compare_and_swap);
    return MPI_SUCCESS;
}

}  // namespace slow

namespace entry {

int Put(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
        int target_count, MPI_Datatype target_datatype, MPI_Win win) {
    if (!OSC_LIKELY(origin_count == target_count)) return slow::Put(OSC_TRY_PUT_ARGUMENTS, win);
    if (!OSC_LIKELY(origin_datatype == target_datatype)) return slow::Put(OSC_TRY_PUT_ARGUMENTS, win);
    std::uint64_t bytes = 0;
    std::byte* target = nullptr;
    if (!OSC_LIKELY(
            fast_transfer(find_front(win), origin_count, origin_datatype, target_rank, target_disp, target, bytes)))
        return slow::put_same(origin_addr, origin_count, origin_datatype, target_rank, target_disp, win);
    count_served(Entry::Put);
    if (OSC_LIKELY(bytes == 8))
        store(target, load<std::uint64_t>(origin_addr));
    else
        shm::move_bytes(target, origin_addr, bytes);
    return MPI_SUCCESS;
}

int Get(void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
        int target_count, MPI_Datatype target_datatype, MPI_Win win) {
    if (!OSC_LIKELY(origin_count == target_count)) return slow::Get(OSC_TRY_PUT_ARGUMENTS, win);
    if (!OSC_LIKELY(origin_datatype == target_datatype)) return slow::Get(OSC_TRY_PUT_ARGUMENTS, win);
    std::uint64_t bytes = 0;
    std::byte* target = nullptr;
    if (!OSC_LIKELY(
            fast_transfer(find_front(win), origin_count, origin_datatype, target_rank, target_disp, target, bytes)))
        return slow::get_same(origin_addr, origin_count, origin_datatype, target_rank, target_disp, win);
    count_served(Entry::Get);
    if (OSC_LIKELY(bytes == 8))
        store(origin_addr, load<std::uint64_t>(target));
    else
        shm::move_bytes(origin_addr, target, bytes);
    return MPI_SUCCESS;
}

int Accumulate(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,
               MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win) {
    if (!OSC_LIKELY(target_count == origin_count && origin_datatype == target_datatype))
        return slow::Accumulate(OSC_TRY_PUT_ARGUMENTS, op, win);
    if (!OSC_LIKELY(origin_count == 1 && slow::quick_update<false>(target_datatype, find_front(win), target_rank,
                                                                   target_disp, op, origin_addr, nullptr)))
        return slow::accumulate_row(origin_addr, origin_count, origin_datatype, target_rank, target_disp, op, win);
    count_served(Entry::Accumulate);
    return MPI_SUCCESS;
}

int Fetch_and_op(const void* origin_addr, void* result_addr, MPI_Datatype datatype, int target_rank,
                 MPI_Aint target_disp, MPI_Op op, MPI_Win win) {
    bool done = false;
    if (OSC_LIKELY(op == MPI_SUM && host::plain_integer64(datatype)))
        done = quick_update<std::uint64_t, true>(find_front(win), target_rank, target_disp, MPI_SUM, origin_addr,
                                                 result_addr);
    if (!OSC_LIKELY(done))
        return slow::fetch_any(origin_addr, result_addr, datatype, target_rank, target_disp, op, win);
    count_served(Entry::Fetch_and_op);
    return MPI_SUCCESS;
}

int Compare_and_swap(const void* origin_addr, const void* compare_addr, void* result_addr, MPI_Datatype datatype,
                     int target_rank, MPI_Aint target_disp, MPI_Win win) {
    if (!OSC_LIKELY(host::plain_integer64(datatype) &&
                    quick_swap<std::uint64_t>(find_front(win), target_rank, target_disp, origin_addr, compare_addr,
                                              result_addr)))
        return slow::swap_any(origin_addr, compare_addr, result_addr, datatype, target_rank, target_disp, win);
    count_served(Entry::Compare_and_swap);
    return MPI_SUCCESS;
}

}  // namespace entry
}  // namespace osc
