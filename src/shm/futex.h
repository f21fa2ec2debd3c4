// Futexes on words in shared mappings. Shared (not PRIVATE) because the waiter may be in another process.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

namespace osc::shm {

static_assert(sizeof(std::atomic<std::uint32_t>) == 4 && std::atomic<std::uint32_t>::is_always_lock_free);

/// Sleeps while `word` holds `expected`, at most `milliseconds` (<= 0: without limit). May return early.
inline void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t expected, long milliseconds) {
    const timespec limit{milliseconds / 1000, milliseconds % 1000 * 1000000};
    ::syscall(SYS_futex, &word, FUTEX_WAIT, expected, milliseconds > 0 ? &limit : nullptr, nullptr, 0);
}

/// Wakes all threads that sleep on `word`.
inline void futex_wake(std::atomic<std::uint32_t>& word) {
    ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace osc::shm
