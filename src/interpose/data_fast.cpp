// The fast path (invariant I8): a contiguous predefined type, a target whose memory is mapped here, an epoch that is
// open for it. No allocation, no system call, no virtual call, no call of the host; accumulates take one stripe lock.
// Everything else goes to perform().
#include "diag/inject.h"
#include "epoch/epoch.h"
#include "host/datatype.h"
#include "interpose/data.h"
#include "transport/shm/direct.h"

namespace osc {
namespace {

#define OSC_LIKELY(condition) __builtin_expect(!!(condition), 1)

// Where `count` elements at `disp` lie in a target that may be accessed now; null if the fast path may not.
inline std::byte* fast_target(Window& window, int rank, MPI_Aint disp, std::uint64_t bytes, Peer*& peer,
                              std::uint64_t& offset) {
    if (OSC_FAULT_ANY) return nullptr;  // faults are built into the general path
    peer = window.direct_peer(rank);
    if (!OSC_LIKELY(peer != nullptr)) return nullptr;
    if (!OSC_LIKELY(!__builtin_mul_overflow(static_cast<std::uint64_t>(disp), peer->unit, &offset))) return nullptr;
    if (!OSC_LIKELY(offset <= peer->size && bytes <= peer->size - offset)) return nullptr;
    return peer->base + offset;
}

// Bytes of `count` elements if `type` is predefined and without gaps, on both sides alike; ~0 otherwise.
inline std::uint64_t fast_bytes(int origin_count, MPI_Datatype origin_type, int target_count,
                                MPI_Datatype target_type) {
    if (!OSC_LIKELY(origin_type == target_type && origin_count == target_count && target_count >= 0)) return ~0ull;
    const op::TypeInfo* type = host::predefined(target_type);
    if (!OSC_LIKELY(type != nullptr && type->contiguous)) return ~0ull;
    return type->size * static_cast<std::uint64_t>(target_count);
}

template <class T>
inline void add(std::byte* target, const void* origin) {
    T old;
    T more;
    __builtin_memcpy(&old, target, sizeof old);
    __builtin_memcpy(&more, origin, sizeof more);
    old += more;
    __builtin_memcpy(target, &old, sizeof old);
}

// One element under its stripe's lock; the commonest cases without a call.
inline void apply_one(const op::TypeInfo& type, Op op, std::byte* target, const void* origin) {
    if (op == Op::Sum) {
        switch (type.basic) {
            case Basic::I64:
            case Basic::U64:
                add<std::uint64_t>(target, origin);
                return;
            case Basic::I32:
            case Basic::U32:
                add<std::uint32_t>(target, origin);
                return;
            case Basic::F64:
                add<double>(target, origin);
                return;
            default:
                break;
        }
    }
    if (op == Op::NoOp) return;
    op::kernel(op, type.basic)(target, origin, 1);
}

}  // namespace

namespace entry {

int Put(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
        int target_count, MPI_Datatype target_datatype, MPI_Win win) {
    Window* const window = find_window(win);
    if (!OSC_LIKELY(window != nullptr))
        OSC_FORWARD(Put, (origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count,
                          target_datatype, win));
    count_served(Entry::Put);
    const std::uint64_t bytes = fast_bytes(origin_count, origin_datatype, target_count, target_datatype);
    Peer* peer = nullptr;
    std::uint64_t offset = 0;
    if (std::byte* target = fast_target(*window, target_rank, target_disp, bytes, peer, offset); OSC_LIKELY(target)) {
        shm::move_bytes(target, origin_addr, bytes);
        return MPI_SUCCESS;
    }
    return perform(*window, "MPI_Put", op::Kind::Put,
                   {const_cast<void*>(origin_addr), origin_count, origin_datatype, nullptr, 0, MPI_DATATYPE_NULL,
                    nullptr, target_rank, target_disp, target_count, target_datatype});
}

int Get(void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
        int target_count, MPI_Datatype target_datatype, MPI_Win win) {
    Window* const window = find_window(win);
    if (!OSC_LIKELY(window != nullptr))
        OSC_FORWARD(Get, (origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count,
                          target_datatype, win));
    count_served(Entry::Get);
    const std::uint64_t bytes = fast_bytes(origin_count, origin_datatype, target_count, target_datatype);
    Peer* peer = nullptr;
    std::uint64_t offset = 0;
    if (std::byte* target = fast_target(*window, target_rank, target_disp, bytes, peer, offset); OSC_LIKELY(target)) {
        shm::move_bytes(origin_addr, target, bytes);
        return MPI_SUCCESS;
    }
    return perform(*window, "MPI_Get", op::Kind::Get,
                   {origin_addr, origin_count, origin_datatype, nullptr, 0, MPI_DATATYPE_NULL, nullptr, target_rank,
                    target_disp, target_count, target_datatype});
}

int Accumulate(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,
               MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win) {
    Window* const window = find_window(win);
    if (!OSC_LIKELY(window != nullptr))
        OSC_FORWARD(Accumulate, (origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count,
                                 target_datatype, op, win));
    count_served(Entry::Accumulate);
    const std::uint64_t bytes = fast_bytes(origin_count, origin_datatype, target_count, target_datatype);
    Peer* peer = nullptr;
    std::uint64_t offset = 0;
    std::byte* const target = fast_target(*window, target_rank, target_disp, bytes, peer, offset);
    if (OSC_LIKELY(target != nullptr && target_count == 1)) {
        const op::TypeInfo& type = *host::predefined(target_datatype);
        const Op what = op_of(op);
        if (OSC_LIKELY(op::admits(what, type.basic))) {
            std::atomic<std::uint32_t>& stripe = peer->block->stripe_of(offset);
            std::uint32_t dead = 0;
            if (OSC_LIKELY(sync::stripe_lock(stripe, window->me, *window, dead))) {
                apply_one(type, what, target, origin_addr);
                sync::stripe_unlock(stripe);
                return MPI_SUCCESS;
            }
        }
    }
    return perform(*window, "MPI_Accumulate", op::Kind::Accumulate,
                   {const_cast<void*>(origin_addr), origin_count, origin_datatype, nullptr, 0, MPI_DATATYPE_NULL,
                    nullptr, target_rank, target_disp, target_count, target_datatype},
                   op);
}

int Fetch_and_op(const void* origin_addr, void* result_addr, MPI_Datatype datatype, int target_rank,
                 MPI_Aint target_disp, MPI_Op op, MPI_Win win) {
    Window* const window = find_window(win);
    if (!OSC_LIKELY(window != nullptr))
        OSC_FORWARD(Fetch_and_op, (origin_addr, result_addr, datatype, target_rank, target_disp, op, win));
    count_served(Entry::Fetch_and_op);
    const std::uint64_t bytes = fast_bytes(1, datatype, 1, datatype);
    Peer* peer = nullptr;
    std::uint64_t offset = 0;
    std::byte* const target = fast_target(*window, target_rank, target_disp, bytes, peer, offset);
    if (OSC_LIKELY(target != nullptr)) {
        const op::TypeInfo& type = *host::predefined(datatype);
        const Op what = op_of(op);
        if (OSC_LIKELY(op::admits(what, type.basic))) {
            std::atomic<std::uint32_t>& stripe = peer->block->stripe_of(offset);
            std::uint32_t dead = 0;
            if (OSC_LIKELY(sync::stripe_lock(stripe, window->me, *window, dead))) {
                shm::move_bytes(result_addr, target, bytes);
                apply_one(type, what, target, origin_addr);
                sync::stripe_unlock(stripe);
                return MPI_SUCCESS;
            }
        }
    }
    return perform_element(*window, "MPI_Fetch_and_op", op::Kind::GetAccumulate,
                           {const_cast<void*>(origin_addr), 1, datatype, result_addr, 1, datatype, nullptr, target_rank,
                            target_disp, 1, datatype},
                           op);
}

int Compare_and_swap(const void* origin_addr, const void* compare_addr, void* result_addr, MPI_Datatype datatype,
                     int target_rank, MPI_Aint target_disp, MPI_Win win) {
    Window* const window = find_window(win);
    if (!OSC_LIKELY(window != nullptr))
        OSC_FORWARD(Compare_and_swap,
                    (origin_addr, compare_addr, result_addr, datatype, target_rank, target_disp, win));
    count_served(Entry::Compare_and_swap);
    const std::uint64_t bytes = fast_bytes(1, datatype, 1, datatype);
    Peer* peer = nullptr;
    std::uint64_t offset = 0;
    std::byte* const target = fast_target(*window, target_rank, target_disp, bytes, peer, offset);
    if (OSC_LIKELY(target != nullptr)) {
        if (OSC_LIKELY(op::admits_compare(host::predefined(datatype)->basic))) {
            std::atomic<std::uint32_t>& stripe = peer->block->stripe_of(offset);
            std::uint32_t dead = 0;
            if (OSC_LIKELY(sync::stripe_lock(stripe, window->me, *window, dead))) {
                const bool same = __builtin_memcmp(target, compare_addr, bytes) == 0;
                shm::move_bytes(result_addr, target, bytes);
                if (same) shm::move_bytes(target, origin_addr, bytes);
                sync::stripe_unlock(stripe);
                return MPI_SUCCESS;
            }
        }
    }
    return perform_element(*window, "MPI_Compare_and_swap", op::Kind::CompareAndSwap,
                           {const_cast<void*>(origin_addr), 1, datatype, result_addr, 1, datatype, compare_addr,
                            target_rank, target_disp, 1, datatype});
}

}  // namespace entry
}  // namespace osc
