// Comparisons with atomic words for the fast path. On x86-64 every load is an acquire and one instruction can compare
// with memory, but compilers do not fold atomic loads into comparisons. The inline assembly does.
#pragma once

#include <atomic>
#include <cstdint>

namespace osc::shm {

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define OSC_FOLDED_COMPARE 1
#endif

/// word == value, with acquire order.
template <class T>
inline bool equals(const std::atomic<T>& word, T value) {
#ifdef OSC_FOLDED_COMPARE
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    bool same;
    asm("cmp %1, %2" : "=@cce"(same) : "m"(word), "r"(value) : "memory");
    return same;
#else
    return word.load(std::memory_order_acquire) == value;
#endif
}

/// Decrements `counter`; true if it becomes 0. Plain instructions: with several threads a decrement may be lost, but
/// zero is never missed.
inline bool count_down(std::atomic<std::uint32_t>& counter) {
#ifdef OSC_FOLDED_COMPARE
    bool zero;
    asm("decl %1" : "=@ccz"(zero), "+m"(counter));
    return zero;
#else
    const std::uint32_t left = counter.load(std::memory_order_relaxed) - 1;
    counter.store(left, std::memory_order_relaxed);
    return left == 0;
#endif
}

}  // namespace osc::shm
