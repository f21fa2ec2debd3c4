// How many calls of each entry point libosc has served and passed on. Every thread counts its own calls, because
// threads that add to one word hand its cache line to each other at each call. A thread's first call lists its words;
// reading adds the words of all listed threads to those of threads that have ended.
#pragma once

#include <atomic>
#include <cstdint>

namespace osc {

/// Names the entry points in counters.
enum class Entry : unsigned {
#define OSC_ENTRY(kind, name, parameters, arguments) name,
#include "api/entries.def"
    Count,
};
inline constexpr unsigned kEntries = static_cast<unsigned>(Entry::Count);

namespace detail {

/// A count in its negative form: the subtraction of 1 from 0 borrows, so one instruction counts and finds the first
/// call.
using CountWord = std::atomic<std::uint64_t>;

/// The counts of a thread. The thread alone writes the words, others read them.
struct ThreadCounts {
    enum class State : char { New, Listed, Ended };
    CountWord served[kEntries];
    std::atomic<std::uint32_t> flushes{1};  // countdown to the next call of the host's progress
    ThreadCounts* next = nullptr;
    State state = State::New;
};
// The library's thread-local memory must fit into what the C library keeps for dlopen().
static_assert(sizeof(ThreadCounts) <= 640);
[[gnu::tls_model("initial-exec")]] extern constinit thread_local ThreadCounts t_counts;

extern std::atomic<std::uint64_t> g_forwarded[kEntries];

/// Counts one; true if the word was 0.
inline bool count_first(CountWord& word) {
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    bool borrow;
    asm("subq $1, %1" : "=@ccc"(borrow), "+m"(word));
    return borrow;
#else
    const std::uint64_t before = word.load(std::memory_order_relaxed);
    word.store(before - 1, std::memory_order_relaxed);
    return before == 0;
#endif
}

}  // namespace detail

/// Counts a call that libosc serves. True for the first one of a thread and entry point: the caller then calls
/// first_call(). Thread-safe.
[[nodiscard]] inline bool is_first_call(Entry entry) {
    return __builtin_expect(detail::count_first(detail::t_counts.served[static_cast<unsigned>(entry)]), 0);
}

/// Lists the words of this thread, or, if it is ending, moves their counts to those of ended threads. Returns 0
/// (MPI_SUCCESS), so that a fast path ends in a jump to it.
int first_call();

/// Both.
inline void count_served(Entry entry) {
    if (is_first_call(entry)) first_call();
}

/// The same as the last act of a call that succeeds; returns 0 (MPI_SUCCESS). The caller saves no registers for it.
[[nodiscard]] inline int succeed(Entry entry) {
    return is_first_call(entry) ? first_call() : 0;
}

/// Counts a call that libosc passes on to the host. Thread-safe.
inline void count_forwarded(Entry entry) {
    detail::g_forwarded[static_cast<unsigned>(entry)].fetch_add(1, std::memory_order_relaxed);
}

/// The calls so far of all threads, also of those that have ended. Exact for the calls that happen before this one.
std::uint64_t served_calls(Entry entry);
std::uint64_t forwarded_calls(Entry entry);

}  // namespace osc
