// Comparisons with atomic words, and tests of them, for the fast path. On x86-64 every load is an acquire and one
// instruction can compare with memory, but compilers do not fold atomic loads into comparisons. The inline assembly
// does.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

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

/// word == 0, with acquire order. The word need not be a std::atomic.
template <class Word>
inline bool is_zero(const Word& word) {
    static_assert(sizeof(Word) == 4);
#ifdef OSC_FOLDED_COMPARE
    bool zero;
    asm volatile("cmpl $0, %1" : "=@cce"(zero) : "m"(word) : "memory");
    return zero;
#else
    if constexpr (requires { word.load(std::memory_order_acquire); })
        return word.load(std::memory_order_acquire) == 0;
    else
        return __atomic_load_n(&word, __ATOMIC_ACQUIRE) == 0;
#endif
}

/// value < word, unsigned, with acquire order.
template <class T>
inline bool below(T value, const std::atomic<T>& word) {
    static_assert(std::is_unsigned_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
#ifdef OSC_FOLDED_COMPARE
    bool less;
    asm("cmp %1, %2" : "=@ccb"(less) : "m"(word), "r"(value) : "memory");
    return less;
#else
    return value < word.load(std::memory_order_acquire);
#endif
}

/// Sets the lowest bit, with acquire order; true if it was clear. Compilers compute the word's address apart.
inline bool set_lowest(std::atomic<std::uint32_t>& word) {
#ifdef OSC_FOLDED_COMPARE
    bool was_set;
    asm volatile("lock btsl $0, %1" : "=@ccc"(was_set), "+m"(word) : : "memory");
    return !was_set;
#else
    return (word.fetch_or(1, std::memory_order_acquire) & 1) == 0;
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
