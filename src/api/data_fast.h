// Parts of the fast paths (invariant I8), for a contiguous predefined type and an open target whose memory is mapped
// here. They make no allocation, system call, virtual call or call of the host; accumulates take one stripe lock. Every
// function returns false, with nothing done, if the general path must decide.
#pragma once

#include <type_traits>

#include "api/call_counts.h"
#include "host/datatype.h"
#include "host/host.h"
#include "local/direct.h"
#include "op/kernels.h"
#include "window/window.h"

namespace osc::fast {

#define OSC_LIKELY(condition) __builtin_expect(!!(condition), 1)

// The offset of `bytes` bytes at `disp` of a target; false if the fast path may not access them. A negative rank
// converts to a huge number and fails its comparison. The limit is read first: the other fields were set before it.
inline bool fast_target(Window& window, int rank, MPI_Aint disp, std::int64_t bytes, Target*& target,
                        std::uint64_t& offset) {
    if (!OSC_LIKELY(static_cast<std::uint32_t>(rank) < window.core.size)) return false;
    target = &window.core.targets[static_cast<std::uint32_t>(rank)];
    return target->contains(disp, bytes, target->fast_limit.load(std::memory_order_acquire), offset);
}

// The same, and the address.
[[gnu::always_inline]] inline bool fast_address(Window& window, int rank, MPI_Aint disp, std::int64_t bytes,
                                                std::byte*& memory) {
    Target* target = nullptr;
    std::uint64_t offset = 0;
    if (!OSC_LIKELY(fast_target(window, rank, disp, bytes, target, offset))) return false;
    memory = target->base + offset;
    return true;
}

// The target of a transfer of `count` elements of a predefined type without gaps.
[[gnu::always_inline]] inline bool fast_transfer(Window* window, int count, MPI_Datatype type, int rank, MPI_Aint disp,
                                                 std::byte*& memory, std::uint64_t& bytes) {
    if (!OSC_LIKELY(window != nullptr)) return false;
    // One 64-bit element is apart, so that its path needs few registers.
    if (OSC_LIKELY(abi::is_plain_of_8(type)) && OSC_LIKELY(count == 1)) {
        bytes = 8;
        return fast_address(*window, rank, disp, 8, memory);
    }
    const std::int64_t width = abi::plain_size(type);
    if (!OSC_LIKELY(width >= 0)) return false;
    const std::int64_t length = width * count;
    bytes = static_cast<std::uint64_t>(length);
    return OSC_LIKELY(length >= 0 && fast_address(*window, rank, disp, length, memory));
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

// One 64-bit element is the most frequent transfer.
inline void move_bytes(void* to, const void* from, std::uint64_t bytes) {
    if (OSC_LIKELY(bytes == 8))
        store(to, load<std::uint64_t>(from));
    else
        shm::move_bytes(to, from, bytes);
}

// A fast path only jumps to what is rare, so that it saves no registers for it.
[[gnu::noinline]] inline int first_request(MPI_Request* request) {
    first_call();
    return host::completed_request(request);
}

// succeed() for a call that returns a completed request.
inline int succeed_with(Entry entry, MPI_Request* request) {
    return is_first_call(entry) ? first_request(request) : host::completed_request(request);
}

// The end of a transfer, with or without a request.
template <Entry kEntry, class... Request>
inline int end_transfer(Request... request) {
    if constexpr (sizeof...(request) == 0)
        return succeed(kEntry);
    else
        return succeed_with(kEntry, request...);
}
template <Entry kEntry, class... Request>
[[gnu::noinline]] int move_long(void* to, const void* from, std::uint64_t bytes, Request... request) {
    shm::move_bytes(to, from, bytes);
    return end_transfer<kEntry>(request...);
}
template <Entry kEntry, class... Request>
inline int move_and_succeed(void* to, const void* from, std::uint64_t bytes, Request... request) {
    if (!OSC_LIKELY(bytes == sizeof(std::uint64_t))) return move_long<kEntry>(to, from, bytes, request...);
    store(to, load<std::uint64_t>(from));
    return end_transfer<kEntry>(request...);
}

// The operations that need no table of kernels: those of counters, queues and histograms. MPI_NO_OP only fetches (MPI
// 4.1 section 12.3.4).
template <bool kFetch>
inline bool is_quick(MPI_Op op) {
    return op == MPI_SUM || op == MPI_REPLACE || (kFetch && op == MPI_NO_OP);
}

// Whether a fetching update has its buffers: the general path reports those that are null.
inline bool has_operands(const void* origin, const void* result, MPI_Op op) {
    return OSC_LIKELY(result != nullptr) && (OSC_LIKELY(origin != nullptr) || op == MPI_NO_OP);
}

// Calls f(the target's memory) under the stripe's lock; false if that is not free, with nothing done.
template <class F>
inline bool under_free_stripe(const Window& window, const Target& target, std::uint64_t offset, F&& f) {
    std::atomic<std::uint32_t>& stripe = target.control().stripe_of(offset);
    std::uint32_t free = 0;
    if (!OSC_LIKELY(stripe.compare_exchange_strong(free, window.core.me + 1, std::memory_order_acquire,
                                                   std::memory_order_relaxed)))
        return false;
    f(target.base + offset);
    sync::stripe_unlock(stripe);
    return true;
}

// Updates one element of type T under its stripe's lock; false if the fast path may not, with nothing done.
template <class T, bool kFetch>
inline bool quick_update(Window* window, int rank, MPI_Aint disp, MPI_Op op, const void* origin, void* result) {
    if (!OSC_LIKELY(window != nullptr)) return false;
    if (!OSC_LIKELY(is_quick<kFetch>(op))) return false;
    Target* target = nullptr;
    std::uint64_t offset = 0;
    if (!OSC_LIKELY(fast_target(*window, rank, disp, sizeof(T), target, offset))) return false;
    return under_free_stripe(*window, *target, offset, [&](std::byte* memory) {
        const T old = load<T>(memory);
        if constexpr (kFetch) store(result, old);
        if (OSC_LIKELY(op == MPI_SUM))
            store<T>(memory, static_cast<T>(old + load<T>(origin)));
        else if (op == MPI_REPLACE)
            store(memory, load<T>(origin));
    });
}

// Longer rows are added by the kernels, which use the processor's widest vectors.
inline constexpr std::size_t kInlineBytes = 64;

template <class T>
inline constexpr Basic kBasicOf = std::is_same_v<T, double> ? Basic::F64
                                  : sizeof(T) == 8          ? Basic::U64
                                                            : Basic::U32;

template <class T>
inline void add_row(std::byte* memory, const std::byte* origin, std::size_t elements) {
    if (elements * sizeof(T) > kInlineBytes)
        return op::run_aligned(op::kernel(Op::Sum, kBasicOf<T>), memory, origin, elements, sizeof(T));
    for (std::size_t at = 0; at < elements * sizeof(T); at += sizeof(T))
        store<T>(memory + at, static_cast<T>(load<T>(memory + at) + load<T>(origin + at)));
}

// Updates a row of elements under one stripe's lock; false if the fast path may not, with nothing done.
template <class T, bool kFetch>
inline bool quick_row(Window* window, int count, int rank, MPI_Aint disp, MPI_Op op, const void* origin, void* result) {
    if (!OSC_LIKELY(window != nullptr && is_quick<kFetch>(op))) return false;
    const auto elements = static_cast<std::size_t>(count);
    if (!OSC_LIKELY(elements - 1 < (std::size_t{1} << shm::kStripeShift) / sizeof(T))) return false;
    Target* target = nullptr;
    std::uint64_t offset = 0;
    if (!OSC_LIKELY(fast_target(*window, rank, disp, static_cast<std::int64_t>(elements * sizeof(T)), target, offset)))
        return false;
    const std::uint64_t last = offset + (elements - 1) * sizeof(T);
    if (!OSC_LIKELY((offset ^ last) >> shm::kStripeShift == 0)) return false;
    return under_free_stripe(*window, *target, offset, [&](std::byte* memory) {
        const auto* from = static_cast<const std::byte*>(origin);
        if constexpr (kFetch) shm::move_bytes(result, memory, elements * sizeof(T));
        if (op == MPI_REPLACE) shm::move_bytes(memory, from, elements * sizeof(T));
        if (op == MPI_SUM) add_row<T>(memory, from, elements);
    });
}

// A row of one element or more, of the types that have fast updates.
template <bool kFetch>
inline bool quick_any(MPI_Datatype type, Window* window, int count, int rank, MPI_Aint disp, MPI_Op op,
                      const void* origin, void* result) {
    switch (abi::plain_basic(type)) {
        case Basic::I64:
        case Basic::U64:
            return quick_row<std::uint64_t, kFetch>(window, count, rank, disp, op, origin, result);
        case Basic::I32:
        case Basic::U32:
            return quick_row<std::uint32_t, kFetch>(window, count, rank, disp, op, origin, result);
        case Basic::F64:
            return quick_row<double, kFetch>(window, count, rank, disp, op, origin, result);
        default:
            return false;
    }
}

// Compares and swaps one element of type T under its stripe's lock; false if the fast path may not, with nothing done.
template <class T>
inline bool quick_swap(Window* window, int rank, MPI_Aint disp, const void* origin, const void* compare, void* result) {
    if (!OSC_LIKELY(window != nullptr)) return false;
    Target* target = nullptr;
    std::uint64_t offset = 0;
    if (!OSC_LIKELY(fast_target(*window, rank, disp, sizeof(T), target, offset))) return false;
    return under_free_stripe(*window, *target, offset, [&](std::byte* memory) {
        const T old = load<T>(memory);
        if (old == load<T>(compare)) store(memory, load<T>(origin));
        store(result, old);
    });
}

}  // namespace osc::fast
