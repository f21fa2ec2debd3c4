/* notify.h: notified RMA. A notified operation increments a counter of its target when its data is complete there, so
 * the target waits for data in its own memory without a message, a fence or a poll of that memory. The calls and their
 * arguments are those of the MPI Forum's proposal (mpi-issues 59), with the prefix OSC_; wait, test and wait-any are
 * libosc's own. notify_fallback.h makes the same program run over an MPI library without libosc.
 *
 * Counters. Each process of a window has as many counters as it asks for, 2^20 at most: OSC_Win_set_num_notify. They
 * are 0 then, and each notified operation at the process adds 1 to the counter that it names. A window has none at
 * first.
 *
 * Order. A notification is counted after the data of its own operation: a put or accumulate is in the target's memory,
 * a get has read it. There is no order between different operations, of one origin or of several. A notification says
 * nothing about completion at the origin: flush, unlock, or the request's wait does.
 *
 * Memory. A call that returns a counter's value, in C11's terms, acquires what its notifications released, and acts as
 * MPI_Win_sync at the target: loads that follow see the data.
 *
 * Epochs. Notified operations need a lock or lock_all epoch at the origin. They are issued by the call, also where
 * other operations of the epoch wait. The target needs no epoch. A notified operation at MPI_PROC_NULL does nothing;
 * one that moves no data still notifies.
 *
 * Errors go to the window's error handler, before data moves: MPI_ERR_ARG for a counter that does not exist,
 * MPI_ERR_RMA_SYNC without an epoch, MPI_ERR_UNSUPPORTED_OPERATION for a window that the host MPI serves, and those of
 * the operation itself. A wait that finds a process of the window dead fails with MPI_ERR_OTHER.
 *
 * Threads: all calls but OSC_Win_set_num_notify are thread-safe at MPI_THREAD_MULTIPLE; several threads may wait at one
 * counter. All calls return MPI_SUCCESS or an error class. */
#ifndef OSC_NOTIFY_H
#define OSC_NOTIFY_H

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/** 1 if libosc serves notified operations on the window, 0 if not; the same on all its processes. */
int OSC_Win_serves_notify(MPI_Win win);

/** Gives the calling process `num` counters, all 0; the numbers may differ between processes. Collective over the
 *  window, and synchronising; no notified operation of the window may be incomplete, and no thread may wait in it.
 *  `info`: the proposal's hints, of which libosc needs none. MPI_ERR_NO_MEM: this process has no counters now. */
int OSC_Win_set_num_notify(MPI_Win win, MPI_Info info, int num);

/** The number of counters of a process. */
int OSC_Win_get_num_notify(MPI_Win win, int target_rank, int* num);

/** The value of one of this process's counters. */
int OSC_Win_get_notify_value(MPI_Win win, int idx, MPI_Count* value);

/** Sets one of this process's counters to 0, and stores what it was, in one atomic step. */
int OSC_Win_reset_notify_value(MPI_Win win, int idx, MPI_Count* value);

/** Waits until one of this process's counters is at least `threshold`; stores its value and leaves it. The thread
 *  sleeps, and drives the host MPI's progress, as in every wait of libosc. `value` may be NULL. */
int OSC_Win_wait_notify(MPI_Win win, int idx, MPI_Count threshold, MPI_Count* value);

/** The same without waiting: `flag` is 1 if the counter is at least `threshold`, else 0. */
int OSC_Win_test_notify(MPI_Win win, int idx, MPI_Count threshold, int* flag, MPI_Count* value);

/** Waits until any of the counters [first, first + count) is at least `threshold`; `idx` is the first one that is. */
int OSC_Win_wait_any_notify(MPI_Win win, int first, int count, MPI_Count threshold, int* idx, MPI_Count* value);

/** The operations of MPI 4.1 section 12.3 with the target's counter `notification_idx`. */
int OSC_Put_notify(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,
                   MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, int notification_idx,
                   MPI_Win win);
int OSC_Get_notify(void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,
                   MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, int notification_idx,
                   MPI_Win win);
int OSC_Accumulate_notify(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,
                          MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Op op,
                          int notification_idx, MPI_Win win);
int OSC_Get_accumulate_notify(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype,
                              void* result_addr, int result_count, MPI_Datatype result_datatype, int target_rank,
                              MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Op op,
                              int notification_idx, MPI_Win win);

/** The same with a request, which completes with the operation at the origin (12.3.5). */
int OSC_Rput_notify(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,
                    MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, int notification_idx,
                    MPI_Win win, MPI_Request* request);
int OSC_Rget_notify(void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,
                    MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, int notification_idx,
                    MPI_Win win, MPI_Request* request);
int OSC_Raccumulate_notify(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank,
                           MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Op op,
                           int notification_idx, MPI_Win win, MPI_Request* request);
int OSC_Rget_accumulate_notify(const void* origin_addr, int origin_count, MPI_Datatype origin_datatype,
                               void* result_addr, int result_count, MPI_Datatype result_datatype, int target_rank,
                               MPI_Aint target_disp, int target_count, MPI_Datatype target_datatype, MPI_Op op,
                               int notification_idx, MPI_Win win, MPI_Request* request);

#ifdef __cplusplus
}
#endif

#endif
