// Operations in general: any datatypes, any target, any flavour. The fast path (data_fast.cpp) falls back to these.
#pragma once

#include "interpose/serve.h"

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

/// Checks and performs one operation (MPI 4.1 section 12.3); an MPI error class, raised already.
int perform(Window& window, const char* function, op::OpKind kind, const Buffers& buffers, MPI_Op op = MPI_OP_NULL);

/// The same for MPI_Fetch_and_op and MPI_Compare_and_swap, which take predefined datatypes only (12.3.4).
int perform_element(Window& window, const char* function, op::OpKind kind, const Buffers& buffers,
                    MPI_Op op = MPI_OP_NULL);

/// Performs one notified operation (include/osc/notify.h), in a lock or lock_all epoch: the same, and then increments
/// counter `index` of the target. `request`: null, or where the operation's request goes.
int perform_notified(Window& window, const char* function, op::OpKind kind, const Buffers& buffers, MPI_Op op,
                     int index, MPI_Request* request);

/// Behind the fast paths: performs an accumulate or get_accumulate whose datatype and count are the same at origin and
/// target as a simple operation (epoch/simple.h). False if the general path must decide, also about a null `window`.
/// MPI_NO_OP reads no origin.
bool try_update(Window* window, op::OpKind kind, const void* origin, void* result, int count, MPI_Datatype type,
                MPI_Op op, int rank, MPI_Aint disp);

/// Opens a target for the fast paths, on the first operation of an epoch. True if the caller's fast path may succeed
/// now. False if the target was open already, has no fast path, or cannot be opened: the general path then finds the
/// fault again and reports it.
bool opens(Window* window, int rank);

/// The general forms of the calls whose fast paths are in data_requests.cpp. Not inlined, so that a fast path saves no
/// registers for them.
namespace slow {

[[gnu::noinline]] int Get_accumulate(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype,
                                     void* result_addr, int result_count, MPI_Datatype result_datatype, int target_rank,
                                     MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Op op,
                                     MPI_Win win);
[[gnu::noinline]] int Rput(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,
                           MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Win win,
                           MPI_Request* request);
[[gnu::noinline]] int Rget(void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,
                           MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Win win,
                           MPI_Request* request);
[[gnu::noinline]] int Raccumulate(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype,
                                  int target_rank, MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype,
                                  MPI_Op op, MPI_Win win, MPI_Request* request);
[[gnu::noinline]] int Rget_accumulate(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype,
                                      void* result_addr, int result_count, MPI_Datatype result_datatype,
                                      int target_rank, MPI_Aint target_disp, int target_count,
                                      MPI_Datatype target_datatype, MPI_Op op, MPI_Win win, MPI_Request* request);

}  // namespace slow

}  // namespace osc
