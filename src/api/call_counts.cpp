#include "api/call_counts.h"

#include <pthread.h>

#include <mutex>
#include <new>

namespace osc {
namespace detail {

constinit thread_local ThreadCounts t_counts;
constinit std::atomic<std::uint64_t> g_forwarded[kEntries];

namespace {

// Guards the list and the counts of ended threads. No other lock is taken under it.
constinit std::mutex g_mutex;
constinit ThreadCounts* g_listed = nullptr;
constinit std::uint64_t g_ended[kEntries] = {};

// Moves the counts of a thread that counts no more to those of ended threads. The caller has the mutex.
void move_counts(ThreadCounts& counts) {
    for (unsigned i = 0; i < kEntries; ++i) {
        g_ended[i] -= counts.served[i].load(std::memory_order_relaxed);
        counts.served[i].store(0, std::memory_order_relaxed);
    }
}

// In the child of fork(), where no other thread lives. A thread of the parent may have had the mutex. Until a new
// thread starts the stacks of the parent's threads, which have their words, stay mapped.
void keep_own_counts() {
    new (&g_mutex) std::mutex;
    for (ThreadCounts* counts = g_listed; counts != nullptr; counts = counts->next)
        if (counts != &t_counts) move_counts(*counts);
    g_listed = t_counts.state == ThreadCounts::State::Listed ? &t_counts : nullptr;
    t_counts.next = nullptr;
}

// Ends the counting of a thread. Later destructors of the thread may still call MPI: each of their calls is then a
// first one.
struct End {
    ~End() {
        const std::lock_guard lock(g_mutex);
        for (ThreadCounts** link = &g_listed; *link != nullptr; link = &(*link)->next)
            if (*link == &t_counts) {
                *link = t_counts.next;
                break;
            }
        t_counts.state = ThreadCounts::State::Ended;
        move_counts(t_counts);
    }
    void arrange() {}  // a use, which makes the object of this thread
};
thread_local End t_end;

}  // namespace

}  // namespace detail

int first_call() {
    using namespace detail;
    if (t_counts.state == ThreadCounts::State::Listed) return 0;
    if (t_counts.state == ThreadCounts::State::New) {
        t_end.arrange();
        [[maybe_unused]] static const int arranged = ::pthread_atfork(nullptr, nullptr, &keep_own_counts);
    }
    const std::lock_guard lock(g_mutex);
    if (t_counts.state == ThreadCounts::State::Ended) {
        move_counts(t_counts);
    } else {
        t_counts.next = g_listed;
        g_listed = &t_counts;
        t_counts.state = ThreadCounts::State::Listed;
    }
    return 0;
}

std::uint64_t served_calls(Entry entry) {
    const auto i = static_cast<unsigned>(entry);
    const std::lock_guard lock(detail::g_mutex);
    std::uint64_t calls = detail::g_ended[i];
    for (const detail::ThreadCounts* counts = detail::g_listed; counts != nullptr; counts = counts->next)
        calls -= counts->served[i].load(std::memory_order_relaxed);
    return calls;
}

std::uint64_t forwarded_calls(Entry entry) {
    return detail::g_forwarded[static_cast<unsigned>(entry)].load(std::memory_order_relaxed);
}

}  // namespace osc
