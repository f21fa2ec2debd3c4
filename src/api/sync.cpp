// Entry points of the synchronisation calls: they check arguments and translate the host's constants.
// Build: osc --param=logical-op-non-short-circuit=0
#include <span>
#include <vector>

#include "api/serve.h"
#include "core/asserts.h"
#include "core/epoch.h"
#include "shm/compare.h"

namespace osc {
namespace {

using base::fail;

struct AssertBit {
    int host;
    unsigned ours;
};
constexpr AssertBit kAsserts[] = {{MPI_MODE_NOCHECK, epoch::kNoCheck},
                                  {MPI_MODE_NOSTORE, epoch::kNoStore},
                                  {MPI_MODE_NOPUT, epoch::kNoPut},
                                  {MPI_MODE_NOPRECEDE, epoch::kNoPrecede},
                                  {MPI_MODE_NOSUCCEED, epoch::kNoSucceed}};

// The asserts given, if they are among `allowed` (MPI 4.1 section 12.5.5).
Fault read_asserts(int given, unsigned allowed, unsigned& asserts) {
    asserts = 0;
    if (__builtin_expect(given == 0, 1)) return Fault::None;
    for (const AssertBit& bit : kAsserts)
        if ((given & bit.host) != 0 && (bit.ours & allowed) != 0) {
            asserts |= bit.ours;
            given &= ~bit.host;
        }
    if (given != 0)
        return fail(Fault::Assert, "assert bits 0x%x have no meaning for this call", static_cast<unsigned>(given));
    return Fault::None;
}

Fault check_rank(const Window& window, int rank) {
    if (__builtin_expect(static_cast<std::uint32_t>(rank) < window.core.size, 1)) return Fault::None;
    return fail(Fault::Rank, "rank %d is not in [0, %u)", rank, window.core.size);
}

// An array of `count` elements: on the stack up to kFew of them, as the groups of most exchanges are.
template <class T>
class ShortArray {
  public:
    explicit ShortArray(std::size_t count = 0) { resize(count); }
    void resize(std::size_t count) {
        count_ = count;
        if (count > kFew) many_.resize(count);
    }
    T* data() { return count_ > kFew ? many_.data() : few_; }
    T& operator[](std::size_t at) { return data()[at]; }
    std::span<const T> all() { return {data(), count_}; }

  private:
    static constexpr std::size_t kFew = 16;
    std::size_t count_ = 0;
    T few_[kFew] = {};
    std::vector<T> many_;
};
using Ranks = ShortArray<std::uint32_t>;

// The members of `group` as ranks in the window.
Fault translate(Window& window, MPI_Group group, Ranks& ranks) {
    const host::Real& mpi = host::real();
    if (group == MPI_GROUP_NULL) return fail(Fault::Group, "the group is MPI_GROUP_NULL");
    int count = 0;
    if (mpi.Group_size(group, &count) != MPI_SUCCESS) return fail(Fault::Group, "not a valid group");
    if (count == 0) return Fault::None;
    const auto members = static_cast<std::size_t>(count);
    ShortArray<int> here(members);
    ShortArray<int> there(members);
    for (std::size_t i = 0; i < members; ++i)
        here[i] = static_cast<int>(i);
    mpi.Group_translate_ranks(group, count, here.data(), window.team.group(), there.data());
    ranks.resize(members);
    for (std::size_t i = 0; i < members; ++i) {
        if (there[i] == MPI_UNDEFINED || there[i] < 0)
            return fail(Fault::Group, "a member of the group is not in the group of the window");
        ranks[i] = static_cast<std::uint32_t>(there[i]);
    }
    return Fault::None;
}

Fault do_post(Window& window, MPI_Group group, int assert) {
    unsigned asserts = 0;
    Ranks ranks;
    Fault fault = read_asserts(assert, epoch::kNoCheck | epoch::kNoStore | epoch::kNoPut, asserts);
    if (fault == Fault::None) fault = translate(window, group, ranks);
    if (fault != Fault::None) return fault;
    return window.core.checks ? epoch::checked_post(window.core, ranks.all(), asserts)
                              : epoch::post(window.core, ranks.all(), asserts);
}

Fault do_start(Window& window, MPI_Group group, int assert) {
    unsigned asserts = 0;
    Ranks ranks;
    Fault fault = read_asserts(assert, epoch::kNoCheck, asserts);
    if (fault == Fault::None) fault = translate(window, group, ranks);
    if (fault != Fault::None) return fault;
    return window.core.checks ? epoch::checked_start(window.core, ranks.all(), asserts)
                              : epoch::start(window.core, ranks.all(), asserts);
}

Fault do_fence(Window& window, int assert) {
    unsigned asserts = 0;
    const Fault fault =
        read_asserts(assert, epoch::kNoStore | epoch::kNoPut | epoch::kNoPrecede | epoch::kNoSucceed, asserts);
    if (fault != Fault::None) return fault;
    return window.core.checks ? epoch::checked_fence(window.core, asserts) : epoch::fence(window.core, asserts);
}

Fault do_lock(Window& window, int type, int rank, int assert) {
    unsigned asserts = 0;
    if (type != MPI_LOCK_EXCLUSIVE && type != MPI_LOCK_SHARED)
        return fail(Fault::LockType, "lock type %d is neither MPI_LOCK_EXCLUSIVE nor MPI_LOCK_SHARED", type);
    Fault fault = read_asserts(assert, epoch::kNoCheck, asserts);
    if (rank == MPI_PROC_NULL) return fault;
    if (fault == Fault::None) fault = check_rank(window, rank);
    if (fault != Fault::None) return fault;
    return (window.core.checks ? epoch::checked_lock : epoch::lock)(
        window.core, static_cast<std::uint32_t>(rank),
        type == MPI_LOCK_EXCLUSIVE ? sync::LockKind::Exclusive : sync::LockKind::Shared, asserts);
}

Fault do_lock_all(Window& window, int assert) {
    unsigned asserts = 0;
    const Fault fault = read_asserts(assert, epoch::kNoCheck, asserts);
    if (fault != Fault::None) return fault;
    return window.core.checks ? epoch::checked_lock_all(window.core, asserts) : epoch::lock_all(window.core, asserts);
}

// unlock and flush of one rank.
template <class Call, class... More>
Fault at_rank(Window& window, int rank, Call&& call, More... more) {
    if (rank == MPI_PROC_NULL) return Fault::None;
    if (const Fault fault = check_rank(window, rank); fault != Fault::None) return fault;
    return call(window.core, static_cast<std::uint32_t>(rank), more...);
}

Fault do_test(Window& window, int* flag) {
    if (flag == nullptr) return no_result();
    bool done = false;
    const Fault fault = window.core.checks ? epoch::checked_test(window.core, done) : epoch::test(window.core, done);
    // The fault of a false assert is returned after the epoch has ended.
    if (fault == Fault::None || fault == Fault::Assert) *flag = done ? 1 : 0;
    return fault;
}

Fault do_sync(Window& window) {
    epoch::full_order(window.core);
    return Fault::None;
}

// A lock of a window that the host serves also comes after the process's deferred lock.
void keep_order(Entry entry) {
    if (entry == Entry::Win_lock || entry == Entry::Win_lock_all) strategy::g_lock_order.acquire();
}

}  // namespace

// An entry point that calls `what` for libosc's windows and the host for others.
#define OSC_SYNC(name, parameters, arguments, what)              \
    int name parameters {                                        \
        Window* const window = find_window(win);                 \
        if (__builtin_expect(window == nullptr, 0)) {            \
            keep_order(Entry::name);                             \
            OSC_FORWARD_ON(win, name, arguments);                \
        }                                                        \
        count_served(Entry::name);                               \
        shm::t_call = "MPI_" #name;                              \
        return finish(*window, "MPI_" #name, base::attempt([&] { \
            epoch::end_run_if_any(window->core);                 \
            return what;                                         \
        }));                                                     \
    }

namespace slow {

// Not inlined, so that the fast path saves no registers for them.

[[gnu::noinline]] OSC_SYNC(Win_lock, (int lock_type, int rank, int assert, MPI_Win win), (lock_type, rank, assert, win),
                           do_lock(*window, lock_type, rank, assert))
    [[gnu::noinline]] OSC_SYNC(Win_unlock, (int rank, MPI_Win win), (rank, win), at_rank(*window, rank, epoch::unlock))
        [[gnu::noinline]] OSC_SYNC(Win_flush, (int rank, MPI_Win win), (rank, win),
                                   at_rank(*window, rank, epoch::flush, reach::Completion::AtTarget))
            [[gnu::noinline]] OSC_SYNC(Win_flush_local, (int rank, MPI_Win win), (rank, win),
                                       at_rank(*window, rank, epoch::flush, reach::Completion::AtOrigin))

    // Ends a flush that only orders memory accesses, where that must also drive the host.
    [[gnu::noinline]] int ordered(Window& window) {
    window.core.order.store(1, std::memory_order_relaxed);
    epoch::full_order(window.core);
    return MPI_SUCCESS;
}

template <Entry kEntry, bool kThreaded>
[[gnu::noinline]] int flushed_often(Window& window) {
    count_served(kEntry);
    if (!kThreaded) return ordered(window);
    detail::t_counts.flushes.store(epoch::kPollEvery, std::memory_order_relaxed);
    shm::poll_host();
    return MPI_SUCCESS;
}

[[gnu::noinline]] int unlocked(Window& window) {
    count_served(Entry::Win_unlock);
    epoch::unlocked_often(window.core);
    return MPI_SUCCESS;
}

template <bool kThreaded>
[[gnu::noinline]] int unlocked_late(Window& window, int rank) {
    epoch::unlock_late(window.core, static_cast<std::uint32_t>(rank), kThreaded);
    return shm::count_down(window.core.unlocks) ? unlocked(window) : succeed(Entry::Win_unlock);
}

}  // namespace slow

namespace {

// The most frequent cases end here, in a few dozen instructions and without a call; others take the slow path.

template <bool kThreaded, bool kDeferring>
inline int fast_lock(int lock_type, int rank, int assert, MPI_Win win) {
    if (__builtin_expect(((lock_type ^ MPI_LOCK_EXCLUSIVE) | assert) != 0, 0))
        return slow::Win_lock(lock_type, rank, assert, win);
    Window* const window = find_front(win);
    if (__builtin_expect(window != nullptr, 1) &&
        __builtin_expect(epoch::try_lock<kThreaded, kDeferring>(window->core, static_cast<std::uint32_t>(rank)), 1))
        return succeed(Entry::Win_lock);
    return slow::Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
}

template <bool kThreaded>
inline int fast_unlock(int rank, MPI_Win win) {
    Window* const window = find_front(win);
    if (__builtin_expect(window == nullptr, 0)) return slow::Win_unlock(rank, win);
    const sync::Released released = epoch::try_unlock<kThreaded>(window->core, static_cast<std::uint32_t>(rank));
    if (__builtin_expect(released == sync::Released::No, 0)) return slow::Win_unlock(rank, win);
    if (__builtin_expect(released != sync::Released::Yes, 0)) return slow::unlocked_late<kThreaded>(*window, rank);
    return __builtin_expect(shm::count_down(window->core.unlocks), 0) ? slow::unlocked(*window)
                                                                      : succeed(Entry::Win_unlock);
}

// If no operation is incomplete, the two flushes are the same. Threads that share a window order their accesses on
// words of their own. One thread uses the window's, by which runs of updates find that a synchronisation call has come.
template <Entry kEntry, bool kThreaded>
inline int fast_flush(int rank, MPI_Win win, int (*slow)(int, MPI_Win)) {
    Window* const window = find_front(win);
    if (__builtin_expect(window != nullptr && epoch::may_order_only(window->core, static_cast<std::uint32_t>(rank)),
                         1)) {
        std::atomic<std::uint32_t>& order = kThreaded ? detail::t_counts.flushes : window->core.order;
        return __builtin_expect(epoch::order_and_count(order), 0) ? slow::flushed_often<kEntry, kThreaded>(*window)
                                                                  : succeed(kEntry);
    }
    return slow(rank, win);
}

template <bool kThreaded>
int flush(int rank, MPI_Win win) {
    return fast_flush<Entry::Win_flush, kThreaded>(rank, win, slow::Win_flush);
}
template <bool kThreaded>
int flush_local(int rank, MPI_Win win) {
    return fast_flush<Entry::Win_flush_local, kThreaded>(rank, win, slow::Win_flush_local);
}

// Replaces `function` in all tables of routes.
template <class Route, class... A>
void replace(Route Routes::*name, int (*function)(A...), int (*by)(A...)) {
    for (Routes* routes : {&g_mpi, &g_pmpi, &g_own, &g_checked})
        if (Route& route = routes->*name; route == as_route(function)) route = as_route(by);
}

}  // namespace

void serve_one_thread() {
    replace(&Routes::Win_lock, &entry::Win_lock, &fast_lock<false, false>);
    replace(&Routes::Win_unlock, &entry::Win_unlock, &fast_unlock<false>);
    replace(&Routes::Win_flush, &entry::Win_flush, &flush<false>);
    replace(&Routes::Win_flush_local, &entry::Win_flush_local, &flush_local<false>);
}

// A call that still takes the old route has no deferred lock.
void serve_deferred_locks() {
    replace(&Routes::Win_lock, &entry::Win_lock, &fast_lock<true, true>);
    replace(&Routes::Win_lock, &fast_lock<false, false>, &fast_lock<false, true>);
}

void serve_threads() {
    for (const auto fast : {&fast_lock<false, false>, &fast_lock<false, true>, &fast_lock<true, true>})
        replace(&Routes::Win_lock, fast, &entry::Win_lock);
    replace(&Routes::Win_unlock, &fast_unlock<false>, &entry::Win_unlock);
    replace(&Routes::Win_flush, &flush<false>, &entry::Win_flush);
    replace(&Routes::Win_flush_local, &flush_local<false>, &entry::Win_flush_local);
}

namespace entry {

int Win_lock(int lock_type, int rank, int assert, MPI_Win win) {
    return fast_lock<true, false>(lock_type, rank, assert, win);
}

int Win_unlock(int rank, MPI_Win win) {
    return fast_unlock<true>(rank, win);
}

int Win_flush(int rank, MPI_Win win) {
    return flush<true>(rank, win);
}

int Win_flush_local(int rank, MPI_Win win) {
    return flush_local<true>(rank, win);
}

OSC_SYNC(Win_fence, (int assert, MPI_Win win), (assert, win), do_fence(*window, assert))
OSC_SYNC(Win_post, (MPI_Group group, int assert, MPI_Win win), (group, assert, win), do_post(*window, group, assert))
OSC_SYNC(Win_start, (MPI_Group group, int assert, MPI_Win win), (group, assert, win), do_start(*window, group, assert))
OSC_SYNC(Win_complete, (MPI_Win win), (win), epoch::complete(window->core))
OSC_SYNC(Win_wait, (MPI_Win win), (win),
         window->core.checks ? epoch::checked_wait(window->core) : epoch::wait(window->core))
OSC_SYNC(Win_test, (MPI_Win win, int* flag), (win, flag), do_test(*window, flag))
OSC_SYNC(Win_lock_all, (int assert, MPI_Win win), (assert, win), do_lock_all(*window, assert))
OSC_SYNC(Win_unlock_all, (MPI_Win win), (win), epoch::unlock_all(window->core))
OSC_SYNC(Win_flush_all, (MPI_Win win), (win),
         epoch::flush(window->core, Core::kEveryTarget, reach::Completion::AtTarget))
OSC_SYNC(Win_flush_local_all, (MPI_Win win), (win),
         epoch::flush(window->core, Core::kEveryTarget, reach::Completion::AtOrigin))
OSC_SYNC(Win_sync, (MPI_Win win), (win), do_sync(*window))

}  // namespace entry
}  // namespace osc
