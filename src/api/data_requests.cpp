// The fast paths of MPI_Get_accumulate, of the request-based operations, and of the two calls that complete one
// request. On a node an operation is complete when its call returns, so its request is the host's constant one.
// Build: osc --param=logical-op-non-short-circuit=0
#include "api/data.h"
#include "api/data_fast.h"

namespace osc {
namespace {

using namespace fast;

// Whether a request-based operation on `rank` is legal: a lock or lock_all epoch is open (MPI 4.1 section 12.3.5). If
// other threads may change the epoch, this reads only the word that needs no state lock.
inline bool gives_requests(const Window& window, int rank) {
    if (OSC_LIKELY(static_cast<std::uint32_t>(rank) < window.core.flushable.load(std::memory_order_relaxed)))
        return true;
    if (window.core.threaded) return false;
    return window.core.epoch.access == Access::Lock || window.core.epoch.access == Access::LockAll;
}

// The window of a handle if a fast path may serve an operation with a request.
inline Window* requesting(MPI_Win win, int rank, const MPI_Request* request) {
    Window* const window = find_front(win);
    return OSC_LIKELY(window != nullptr && request != nullptr && gives_requests(*window, rank)) ? window : nullptr;
}

// Whether all operands of a fetching update are `count` elements of `type`. MPI_NO_OP ignores the origin's.
inline bool same_operands(int origin_count, MPI_Datatype origin_type, int result_count, MPI_Datatype result_type,
                          int count, MPI_Datatype type, MPI_Op op) {
    if (!OSC_LIKELY(result_count == count && result_type == type)) return false;
    return OSC_LIKELY(origin_count == count && origin_type == type) || op == MPI_NO_OP;
}

// fast_transfer() for an operation with a request, if both sides have the same datatype and count.
[[gnu::always_inline]] inline bool requested_transfer(MPI_Win win, const MPI_Request* request, int origin_count,
                                                      MPI_Datatype origin_type, int rank, MPI_Aint disp, int count,
                                                      MPI_Datatype type, std::byte*& target, std::uint64_t& bytes) {
    return OSC_LIKELY(origin_count == count && origin_type == type) &&
           OSC_LIKELY(fast_transfer(requesting(win, rank, request), count, type, rank, disp, target, bytes));
}

// The most frequent case comes first: a counter or a queue adds to one 64-bit integer.
[[gnu::always_inline]] inline bool quick_fetch(MPI_Datatype type, Window* window, int count, int rank, MPI_Aint disp,
                                               MPI_Op op, const void* origin, void* result) {
    if (OSC_LIKELY(count == 1 && op == MPI_SUM && abi::plain_integer64(type)))
        return quick_update<std::uint64_t, true>(window, rank, disp, MPI_SUM, origin, result);
    return quick_any<true>(type, window, count, rank, disp, op, origin, result);
}

// Whether libosc completes a request: it is the constant one, and the caller wants no status.
inline bool ends_here(const MPI_Request* request, const MPI_Status* status) {
    if (request == nullptr || status != MPI_STATUS_IGNORE) return false;
    return *request == host::constant_request();
}

}  // namespace

namespace entry {

#define OSC_TRANSFER_SIDES origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype
#define OSC_TRANSFER_ARGUMENTS \
    origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype
#define OSC_FETCH_ARGUMENTS                                                                                           \
    origin_addr, origin_count, origin_datatype, result_addr, result_count, result_datatype, target_rank, target_disp, \
        target_count, target_datatype, op

// Behind the fast paths: the same operations on memory that is not mapped here, if both sides have the same datatype
// and count.
template <op::OpKind kKind>
static bool transfers_unmapped(MPI_Win win, const MPI_Request* request, void* origin_addr, int origin_count,
                               MPI_Datatype origin_type, int rank, MPI_Aint disp, int count, MPI_Datatype type) {
    constexpr bool kPut = kKind == op::OpKind::Put;
    return origin_addr != nullptr && origin_count == count && origin_type == type &&
           try_requested(requesting(win, rank, request), kKind, kPut ? origin_addr : nullptr,
                         kPut ? nullptr : origin_addr, count, type, rank, disp);
}

[[gnu::noinline]] static int put_unmapped(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype,
                                          int target_rank, MPI_Aint target_disp, int target_count,
                                          MPI_Datatype target_datatype, MPI_Win win, MPI_Request* request) {
    const bool served =
        transfers_unmapped<op::OpKind::Put>(win, request, const_cast<void*>(origin_addr), origin_count, origin_datatype,
                                            target_rank, target_disp, target_count, target_datatype);
    return served ? succeed_with(Entry::Rput, request) : slow::Rput(OSC_TRANSFER_ARGUMENTS, win, request);
}

[[gnu::noinline]] static int get_unmapped(void* origin_addr, int origin_count, MPI_Datatype origin_datatype,
                                          int target_rank, MPI_Aint target_disp, int target_count,
                                          MPI_Datatype target_datatype, MPI_Win win, MPI_Request* request) {
    const bool served = transfers_unmapped<op::OpKind::Get>(win, request, OSC_TRANSFER_ARGUMENTS);
    return served ? succeed_with(Entry::Rget, request) : slow::Rget(OSC_TRANSFER_ARGUMENTS, win, request);
}

[[gnu::noinline]] static int accumulate_unmapped(const void* origin_addr, int origin_count,
                                                 MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
                                                 int target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win,
                                                 MPI_Request* request) {
    if (origin_addr == nullptr || origin_count != target_count || origin_datatype != target_datatype ||
        !try_update(requesting(win, target_rank, request), op::OpKind::Accumulate, origin_addr, nullptr, target_count,
                    target_datatype, op, target_rank, target_disp, true))
        return slow::Raccumulate(OSC_TRANSFER_ARGUMENTS, op, win, request);
    return succeed_with(Entry::Raccumulate, request);
}

int Get_accumulate(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype, void* result_addr,
                   int result_count, MPI_Datatype result_datatype, int target_rank, MPI_Aint target_disp,
                   int target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win) {
    if (!OSC_LIKELY(same_operands(origin_count, origin_datatype, result_count, result_datatype, target_count,
                                  target_datatype, op)) ||
        !has_operands(origin_addr, result_addr, op))
        return slow::Get_accumulate(OSC_FETCH_ARGUMENTS, win);
    Window* const window = find_front(win);
    if (!OSC_LIKELY(quick_fetch(target_datatype, window, target_count, target_rank, target_disp, op, origin_addr,
                                result_addr)) &&
        !try_update(window, op::OpKind::GetAccumulate, origin_addr, result_addr, target_count, target_datatype, op,
                    target_rank, target_disp)) {
        const bool again = opens(window, target_rank);
        return (again ? entry::Get_accumulate : slow::Get_accumulate)(OSC_FETCH_ARGUMENTS, win);
    }
    return succeed(Entry::Get_accumulate);
}

int Rput(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
         int target_count, MPI_Datatype target_datatype, MPI_Win win, MPI_Request* request) {
    std::uint64_t bytes = 0;
    std::byte* target = nullptr;
    if (!OSC_LIKELY(origin_addr != nullptr) ||
        !OSC_LIKELY(requested_transfer(win, request, OSC_TRANSFER_SIDES, target, bytes)))
        return put_unmapped(OSC_TRANSFER_ARGUMENTS, win, request);
    return move_and_succeed<Entry::Rput>(target, origin_addr, bytes, request);
}

int Rget(void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
         int target_count, MPI_Datatype target_datatype, MPI_Win win, MPI_Request* request) {
    std::uint64_t bytes = 0;
    std::byte* target = nullptr;
    if (!OSC_LIKELY(origin_addr != nullptr) ||
        !OSC_LIKELY(requested_transfer(win, request, OSC_TRANSFER_SIDES, target, bytes)))
        return get_unmapped(OSC_TRANSFER_ARGUMENTS, win, request);
    return move_and_succeed<Entry::Rget>(origin_addr, target, bytes, request);
}

int Raccumulate(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,
                MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win,
                MPI_Request* request) {
    if (!OSC_LIKELY(origin_count == target_count && origin_datatype == target_datatype) ||
        !OSC_LIKELY(origin_addr != nullptr) ||
        !OSC_LIKELY(quick_any<false>(target_datatype, requesting(win, target_rank, request), target_count, target_rank,
                                     target_disp, op, origin_addr, nullptr)))
        return accumulate_unmapped(OSC_TRANSFER_ARGUMENTS, op, win, request);
    return succeed_with(Entry::Raccumulate, request);
}

int Rget_accumulate(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype, void* result_addr,
                    int result_count, MPI_Datatype result_datatype, int target_rank, MPI_Aint target_disp,
                    int target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win, MPI_Request* request) {
    if (!OSC_LIKELY(same_operands(origin_count, origin_datatype, result_count, result_datatype, target_count,
                                  target_datatype, op)) ||
        !has_operands(origin_addr, result_addr, op))
        return slow::Rget_accumulate(OSC_FETCH_ARGUMENTS, win, request);
    Window* const window = requesting(win, target_rank, request);
    if (!OSC_LIKELY(quick_fetch(target_datatype, window, target_count, target_rank, target_disp, op, origin_addr,
                                result_addr)) &&
        !try_update(window, op::OpKind::GetAccumulate, origin_addr, result_addr, target_count, target_datatype, op,
                    target_rank, target_disp, true))
        return slow::Rget_accumulate(OSC_FETCH_ARGUMENTS, win, request);
    return succeed_with(Entry::Rget_accumulate, request);
}

// The host's MPI_Wait of the constant request takes longer than the operation. The host completes every other request,
// MPI_REQUEST_NULL included, and fills every status.
int Wait(MPI_Request* request, MPI_Status* status) {
    if (!ends_here(request, status)) return host::real().Wait(request, status);
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
}

int Test(MPI_Request* request, int* flag, MPI_Status* status) {
    if (!ends_here(request, status) || flag == nullptr) return host::real().Test(request, flag, status);
    *request = MPI_REQUEST_NULL;
    *flag = 1;
    return MPI_SUCCESS;
}

// The usage checker watches these; otherwise they are the host's alone.
#define OSC_ENTRY(kind, name, parameters, arguments)
#define OSC_HOST_ENTRY(kind, name, parameters, arguments) \
    int name parameters {                                 \
        return host::real().name arguments;               \
    }
#include "api/entries.def"

}  // namespace entry
}  // namespace osc
