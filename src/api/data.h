// Operations in general: any datatypes, any target, any flavour. The fast path (data_fast.cpp) falls back to these.
#pragma once

#include "api/serve.h"

namespace osc {

/// The user's view of one operation's buffers, counts widened.
struct Buffers {
    void* origin = nullptr;
    MPI_Count origin_count = 0;
    MPI_Datatype origin_type = MPI_DATATYPE_NULL;
    void* result = nullptr;
    MPI_Count result_count = 0;
    MPI_Datatype result_type = MPI_DATATYPE_NULL;
    const void* compare = nullptr;
    int target_rank = 0;
    MPI_Aint disp = 0;
    MPI_Count target_count = 0;
    MPI_Datatype target_type = MPI_DATATYPE_NULL;
    bool element = false;     // of a call that takes predefined datatypes only (MPI 4.1 section 12.3.4)
    bool no_request = false;  // of a call that gives a request, without a place for it
};

/// An origin buffer for Buffers, which have no const variant: libosc only reads it.
inline void* plain(const void* address) {
    return const_cast<void*>(address);
}

/// The Buffers of an entry point, from its parameters.
#define OSC_TRANSFER_BUFFERS                                                                                           \
    ::osc::Buffers {                                                                                                   \
        ::osc::plain(origin_addr), origin_count, origin_datatype, nullptr, 0, MPI_DATATYPE_NULL, nullptr, target_rank, \
            target_disp, target_count, target_datatype                                                                 \
    }
#define OSC_FETCH_BUFFERS                                                                                              \
    ::osc::Buffers {                                                                                                   \
        ::osc::plain(origin_addr), origin_count, origin_datatype, result_addr, result_count, result_datatype, nullptr, \
            target_rank, target_disp, target_count, target_datatype                                                    \
    }
#define OSC_ELEMENT_BUFFERS(compare)                                                                            \
    ::osc::Buffers {                                                                                            \
        ::osc::plain(origin_addr), 1, datatype, result_addr, 1, datatype, compare, target_rank, target_disp, 1, \
            datatype, true                                                                                      \
    }

/// The Buffers of a call that gives a request.
inline Buffers with_request(Buffers buffers, const MPI_Request* request) {
    buffers.no_request = request == nullptr;
    return buffers;
}

/// What an entry point performs, from its parameters: kind, buffers, operation and request.
#define OSC_PERFORMS_Put ::osc::op::OpKind::Put, OSC_TRANSFER_BUFFERS, MPI_OP_NULL, nullptr
#define OSC_PERFORMS_Get ::osc::op::OpKind::Get, OSC_TRANSFER_BUFFERS, MPI_OP_NULL, nullptr
#define OSC_PERFORMS_Accumulate ::osc::op::OpKind::Accumulate, OSC_TRANSFER_BUFFERS, op, nullptr
#define OSC_PERFORMS_Get_accumulate ::osc::op::OpKind::GetAccumulate, OSC_FETCH_BUFFERS, op, nullptr
#define OSC_PERFORMS_Fetch_and_op ::osc::op::OpKind::GetAccumulate, OSC_ELEMENT_BUFFERS(nullptr), op, nullptr
#define OSC_PERFORMS_Compare_and_swap \
    ::osc::op::OpKind::CompareAndSwap, OSC_ELEMENT_BUFFERS(compare_addr), MPI_OP_NULL, nullptr
#define OSC_PERFORMS_Rput \
    ::osc::op::OpKind::Put, ::osc::with_request(OSC_TRANSFER_BUFFERS, request), MPI_OP_NULL, request
#define OSC_PERFORMS_Rget \
    ::osc::op::OpKind::Get, ::osc::with_request(OSC_TRANSFER_BUFFERS, request), MPI_OP_NULL, request
#define OSC_PERFORMS_Raccumulate \
    ::osc::op::OpKind::Accumulate, ::osc::with_request(OSC_TRANSFER_BUFFERS, request), op, request
#define OSC_PERFORMS_Rget_accumulate \
    ::osc::op::OpKind::GetAccumulate, ::osc::with_request(OSC_FETCH_BUFFERS, request), op, request

/// Checks and performs one notified operation (include/osc/notify.h), in a lock or lock_all epoch: the same as without
/// notification, and then increments counter `index` of the target. `request`: null, or where the operation's request
/// goes. An MPI error class, raised already.
int perform_notified(Window& window, const char* function, op::OpKind kind, const Buffers& buffers, MPI_Op op,
                     int index, MPI_Request* request);

/// Behind the fast paths: performs an accumulate or get_accumulate whose datatype and count are the same at origin and
/// target as a simple operation (core/epoch.h). False if the general path must decide, also about a null `window`.
/// MPI_NO_OP reads no origin. `has_request`: of an operation whose request is complete when the call returns.
bool try_update(Window* window, op::OpKind kind, const void* origin, void* result, int count, MPI_Datatype type,
                MPI_Op op, int rank, MPI_Aint disp, bool has_request = false);
/// The same for a put or get with such a request.
bool try_requested(Window* window, op::OpKind kind, const void* origin, void* result, int count, MPI_Datatype type,
                   int rank, MPI_Aint disp);

/// Opens a target for the fast paths, on the first operation of an epoch. True if the caller's fast path may succeed
/// now. False if the target was open already, has no fast path, or cannot be opened: the general path then finds the
/// fault again and reports it.
bool opens(Window* window, int rank);

/// The general forms of the calls that have fast paths, which end in a jump to them. Not inlined, so that a fast path
/// saves no registers for them.
namespace slow {

[[gnu::noinline]] decltype(entry::Put) Put;
[[gnu::noinline]] decltype(entry::Get) Get;
[[gnu::noinline]] decltype(entry::Accumulate) Accumulate;
[[gnu::noinline]] decltype(entry::Get_accumulate) Get_accumulate;
[[gnu::noinline]] decltype(entry::Fetch_and_op) Fetch_and_op;
[[gnu::noinline]] decltype(entry::Compare_and_swap) Compare_and_swap;
[[gnu::noinline]] decltype(entry::Rput) Rput;
[[gnu::noinline]] decltype(entry::Rget) Rget;
[[gnu::noinline]] decltype(entry::Raccumulate) Raccumulate;
[[gnu::noinline]] decltype(entry::Rget_accumulate) Rget_accumulate;

}  // namespace slow

}  // namespace osc
