// Notified operations and their counters: the exported functions OSC_* of include/osc/notify.h.
// Build: osc
#include "osc/notify.h"

#include <sched.h>

#include <algorithm>

#include "api/data.h"
#include "api/data_fast.h"
#include "api/observed.h"
#include "base/log.h"
#include "core/epoch.h"
#include "core/targets.h"
#include "window/checker.h"

namespace osc {
namespace {

using base::fail;
using sync::NotifyBoard;

constexpr std::uint32_t kPollHostEvery = 64;     // tests and reads of counters
constexpr std::uint32_t kLookForDead = 64 << 4;  // unsuccessful tests

// The error of a call on a window that libosc does not serve.
int refuse(MPI_Win win, const char* function) {
    if (host::real().Win_call_errhandler == nullptr) {
        base::say("%s: libosc serves no window over this MPI library (%s)", function, host::describe_host().c_str());
        return MPI_ERR_WIN;
    }
    if (was_freed(win)) return raise_freed(function);
    if (win == MPI_WIN_NULL) return raise(function, fail(Fault::Win, "the window is MPI_WIN_NULL"));
    base::say("%s: the host MPI serves this window, and has no notified operations; osc/notify_fallback.h has",
              function);
    host::real().Win_call_errhandler(win, MPI_ERR_UNSUPPORTED_OPERATION);
    return MPI_ERR_UNSUPPORTED_OPERATION;
}

// A call returns the value of a counter: the usage checker takes what follows for ordered.
void report_read(Window& window, int counter, std::uint64_t value, bool resets = false) {
    if (!OSC_LIKELY(window.core.ledger == nullptr))
        g_checker->counter_read(window, static_cast<std::uint32_t>(counter), value, resets);
}

// Makes progress for a program that polls a counter.
void drive(Window& window) {
    if (void (*const network)() = shm::wait_policy().network; network != nullptr && window.core.remote_sync != nullptr)
        network();
    const std::uint32_t count = window.notifications.tests.fetch_add(1, std::memory_order_relaxed) + 1;
    if (count % kPollHostEvery != 0) return;
    shm::poll_host();
    ::sched_yield();
}

// The counters [first, first + count) of this process.
Fault own_counters(Window& window, int first, int count, NotifyBoard*& board) {
    board = window.notifications.own();
    const std::uint32_t all = board != nullptr ? board->count.load(std::memory_order_acquire) : 0;
    if (first >= 0 && count > 0 && static_cast<std::uint64_t>(first) + static_cast<std::uint64_t>(count) <= all)
        return Fault::None;
    if (count == 1) return fail(Fault::Arg, "notification index %d is not in [0, %u)", first, all);
    return fail(Fault::Arg, "notification indices [%d, %lld) are not in [0, %u), or none", first,
                static_cast<long long>(first) + count, all);
}

Fault gone(Window& window) {
    return strategy::died(static_cast<std::uint32_t>(std::max(window.core.any_dead(), 0)), "this notification");
}

Fault await(Window& window, int first, int count, MPI_Count threshold, int* idx, MPI_Count* value) {
    NotifyBoard* board = nullptr;
    if (const Fault fault = own_counters(window, first, count, board); fault != Fault::None) return fault;
    const auto from = static_cast<std::uint32_t>(first);
    const auto least = static_cast<std::uint64_t>(std::max<MPI_Count>(threshold, 0));
    std::uint64_t found = 0;
    const auto wanted = static_cast<std::uint32_t>(std::min<std::uint64_t>(least, ~std::uint32_t{0}));
    const shm::WaitScope waits(shm::WaitKind::Notification, window.core.id, window.core.me, from, wanted);
    const std::uint32_t index = board->await(from, static_cast<std::uint32_t>(count), least, found,
                                             [&] { return window.core.any_dead() >= 0; });
    if (index == NotifyBoard::kNone) return gone(window);
    report_read(window, static_cast<int>(index), found);
    board->seen(index, found);
    if (idx != nullptr) *idx = static_cast<int>(index);
    if (value != nullptr) *value = static_cast<MPI_Count>(found);
    return Fault::None;
}

Fault test(Window& window, int index, MPI_Count threshold, int* flag, MPI_Count* value) {
    NotifyBoard* board = nullptr;
    if (flag == nullptr) return no_result();
    if (const Fault fault = own_counters(window, index, 1, board); fault != Fault::None) return fault;
    const auto read = [&] {
        const auto now =
            static_cast<MPI_Count>(board->counter(static_cast<std::uint32_t>(index)).load(std::memory_order_seq_cst));
        report_read(window, index, static_cast<std::uint64_t>(now));
        *flag = now >= threshold ? 1 : 0;
        if (value != nullptr) *value = now;
    };
    read();
    if (*flag != 0) {
        board->seen(static_cast<std::uint32_t>(index), 1);
        return Fault::None;
    }
    drive(window);
    if (window.notifications.tests.load(std::memory_order_relaxed) % kLookForDead != 0 || window.core.any_dead() < 0)
        return Fault::None;
    read();  // what came before the death counts
    return *flag != 0 ? Fault::None : gone(window);
}

Fault set_counters(Window& window, int number) {
    if (number < 0 || static_cast<std::uint32_t>(number) > NotifyBoard::kMost) {
        base::FirstFault first;
        first.note(fail(Fault::Arg, "%d counters: a process has from 0 to %u", number, NotifyBoard::kMost));
        first.note(window.notifications.set(window, 0));  // the other processes are in the call
        return first.take();
    }
    const Fault fault = window.notifications.set(window, static_cast<std::uint32_t>(number));
    if (window.core.ledger != nullptr) g_checker->counters_made(window);
    return fault;
}

Fault get_number(Window& window, int rank, int* number) {
    if (number == nullptr) return no_result();
    if (rank < 0 || static_cast<std::uint32_t>(rank) >= window.core.size)
        return fail(Fault::Rank, "target rank %d is not in [0, %u)", rank, window.core.size);
    std::uint32_t count = 0;
    const Fault fault = window.notifications.count(window, static_cast<std::uint32_t>(rank), count);
    if (fault == Fault::None) *number = static_cast<int>(count);
    return fault;
}

bool is_observed(const Window& window) {
    return window.core.stats != nullptr || window.core.trace != 0;
}

// Performs a call on counters, whose fault is what() returns; counts and records it. `number`: the counter.
template <class What>
int observe(Window& window, trace::Call call, stats::Sync sync, const char* function, std::uint32_t number,
            What&& what) {
    shm::t_call = function;
    const Observed seen(is_observed(window));
    const int error = finish(window, function, base::attempt(what));
    seen.synchronisation(call, sync, &window, number, error);
    return error;
}

// The counter of an open target in shared memory, for the fast path; null: the general path decides. Other threads
// change the state of the epoch under its lock, so a window that they use takes the general path.
NotifyBoard* fast_board(Window* window, int rank, int index) {
    if (!OSC_LIKELY(window != nullptr && window->core.stats == nullptr && window->core.ledger == nullptr &&
                    !window->core.threaded))
        return nullptr;
    if (!OSC_LIKELY(static_cast<std::uint32_t>(rank) < window->core.size)) return nullptr;
    const Access access = window->core.epoch.access;
    if (!OSC_LIKELY(access == Access::Lock || access == Access::LockAll)) return nullptr;
    return window->notifications.known(static_cast<std::uint32_t>(rank), index);
}

int general(MPI_Win win, const char* function, trace::Call call, stats::Kind counted, op::OpKind kind,
            const Buffers& buffers, MPI_Op op, MPI_Request* request, int index) {
    Window* const window = find_window(win);
    if (window == nullptr) return refuse(win, function);
    const Observed seen(is_observed(*window));
    const int error = perform_notified(*window, function, kind, buffers, op, index, request);
    if (is_observed(*window))
        seen.operation(call, counted, window, buffers.target_rank, {buffers.target_count, buffers.target_type}, error,
                       std::uint64_t{static_cast<std::uint32_t>(index)} << trace::kCounterBit);
    return error;
}

}  // namespace
}  // namespace osc

namespace osc::exported {

// The body of a call on a window's counters, which `fault` computes.
#define OSC_ON_COUNTERS(name, number, fault)                                                                        \
    Window* const window = find_window(win);                                                                        \
    if (window == nullptr) return refuse(win, "OSC_" #name);                                                        \
    return observe(*window, trace::Call::name, stats::Sync::name, "OSC_" #name, static_cast<std::uint32_t>(number), \
                   [&] { return fault; })

int OSC_Win_serves_notify(MPI_Win win) {
    return find_window(win) != nullptr ? 1 : 0;
}

int OSC_Win_set_num_notify(MPI_Win win, MPI_Info, int num) {
    OSC_ON_COUNTERS(Win_set_num_notify, trace::kNoTarget, set_counters(*window, num));
}

int OSC_Win_get_num_notify(MPI_Win win, int target_rank, int* num) {
    Window* const window = find_window(win);
    if (window == nullptr) return refuse(win, "OSC_Win_get_num_notify");
    shm::t_call = "OSC_Win_get_num_notify";
    return finish(*window, "OSC_Win_get_num_notify",
                  base::attempt([&] { return get_number(*window, target_rank, num); }));
}

int OSC_Win_get_notify_value(MPI_Win win, int idx, MPI_Count* value) {
    const auto read = [value](Window& window, int index) {
        NotifyBoard* board = nullptr;
        if (value == nullptr) return no_result();
        if (const Fault fault = own_counters(window, index, 1, board); fault != Fault::None) return fault;
        drive(window);
        *value =
            static_cast<MPI_Count>(board->counter(static_cast<std::uint32_t>(index)).load(std::memory_order_seq_cst));
        report_read(window, index, static_cast<std::uint64_t>(*value));
        board->seen(static_cast<std::uint32_t>(index), static_cast<std::uint64_t>(*value));
        return Fault::None;
    };
    OSC_ON_COUNTERS(Win_get_notify_value, idx, read(*window, idx));
}

int OSC_Win_reset_notify_value(MPI_Win win, int idx, MPI_Count* value) {
    const auto reset = [value](Window& window, int index) {
        NotifyBoard* board = nullptr;
        if (const Fault fault = own_counters(window, index, 1, board); fault != Fault::None) return fault;
        const std::uint64_t old =
            board->counter(static_cast<std::uint32_t>(index)).exchange(0, std::memory_order_seq_cst);
        if (old == 0) drive(window);
        report_read(window, index, old, true);
        board->seen(static_cast<std::uint32_t>(index), old);
        if (value != nullptr) *value = static_cast<MPI_Count>(old);
        return Fault::None;
    };
    OSC_ON_COUNTERS(Win_reset_notify_value, idx, reset(*window, idx));
}

int OSC_Win_wait_notify(MPI_Win win, int idx, MPI_Count threshold, MPI_Count* value) {
    OSC_ON_COUNTERS(Win_wait_notify, idx, await(*window, idx, 1, threshold, nullptr, value));
}

int OSC_Win_wait_any_notify(MPI_Win win, int first, int count, MPI_Count threshold, int* idx, MPI_Count* value) {
    OSC_ON_COUNTERS(Win_wait_any_notify, first, await(*window, first, count, threshold, idx, value));
}

int OSC_Win_test_notify(MPI_Win win, int idx, MPI_Count threshold, int* flag, MPI_Count* value) {
    OSC_ON_COUNTERS(Win_test_notify, idx, test(*window, idx, threshold, flag, value));
}

#define OSC_TO int target_rank, MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype
#define OSC_FROM const void *origin_addr, int origin_count, MPI_Datatype origin_datatype
#define OSC_INTO void *origin_addr, int origin_count, MPI_Datatype origin_datatype
#define OSC_RESULT void *result_addr, int result_count, MPI_Datatype result_datatype
#define OSC_COUNTER int notification_idx, MPI_Win win
// Without a request the operation has a fast path: on memory that is mapped here it is done, then counted.
#define OSC_FAST(is_done)                                                                                     \
    Window* const window = find_front(win);                                                                   \
    NotifyBoard* const board = fast_board(window, target_rank, notification_idx);                             \
    [[maybe_unused]] std::uint64_t bytes = 0;                                                                 \
    [[maybe_unused]] std::byte* target = nullptr;                                                             \
    if (OSC_LIKELY(board != nullptr && origin_count == target_count && origin_datatype == target_datatype) && \
        OSC_LIKELY(origin_addr != nullptr) && OSC_LIKELY(is_done)) {                                          \
        board->increment(static_cast<std::uint32_t>(notification_idx));                                       \
        return MPI_SUCCESS;                                                                                   \
    }
#define OSC_MOVES(to, from)                                                                                \
    fast::fast_transfer(window, origin_count, origin_datatype, target_rank, target_disp, target, bytes) && \
        (fast::move_bytes(to, from, bytes), true)
#define OSC_NOTIFY(name, parameters, fast_path)                                                                       \
    int OSC_##name##_notify parameters {                                                                              \
        fast_path return general(win, "OSC_" #name "_notify", trace::Call::name##_notify, stats::Kind::name##_notify, \
                                 OSC_PERFORMS_##name, notification_idx);                                              \
    }

OSC_NOTIFY(Put, (OSC_FROM, OSC_TO, OSC_COUNTER), OSC_FAST(OSC_MOVES(target, origin_addr)))
OSC_NOTIFY(Get, (OSC_INTO, OSC_TO, OSC_COUNTER), OSC_FAST(OSC_MOVES(origin_addr, target)))
OSC_NOTIFY(Accumulate, (OSC_FROM, OSC_TO, MPI_Op op, OSC_COUNTER),
           OSC_FAST(fast::quick_any<false>(origin_datatype, window, origin_count, target_rank, target_disp, op,
                                           origin_addr, nullptr)))
OSC_NOTIFY(Get_accumulate, (OSC_FROM, OSC_RESULT, OSC_TO, MPI_Op op, OSC_COUNTER), )
OSC_NOTIFY(Rput, (OSC_FROM, OSC_TO, OSC_COUNTER, MPI_Request* request), )
OSC_NOTIFY(Rget, (OSC_INTO, OSC_TO, OSC_COUNTER, MPI_Request* request), )
OSC_NOTIFY(Raccumulate, (OSC_FROM, OSC_TO, MPI_Op op, OSC_COUNTER, MPI_Request* request), )
OSC_NOTIFY(Rget_accumulate, (OSC_FROM, OSC_RESULT, OSC_TO, MPI_Op op, OSC_COUNTER, MPI_Request* request), )

}  // namespace osc::exported
