/* osc.h: libosc's own interface, beside the standard MPI one that it serves. Plain C.
 *
 * A program that may run without libosc declares what it uses weak, or looks it up with dlsym. */
#ifndef OSC_OSC_H
#define OSC_OSC_H

#ifdef __cplusplus
extern "C" {
#endif

#define OSC_VERSION_MAJOR 0
#define OSC_VERSION_MINOR 1
#define OSC_VERSION_PATCH 0

/** The version of the library in use, "major.minor.patch". Thread-safe. */
const char* osc_version(void);

/** How many calls of an MPI function (for example "MPI_Put") libosc itself served in this process. C, PMPI and
 *  Fortran callers count alike; 0 for an unknown name. The calls of all threads count, also of threads that have ended.
 *  Thread-safe; another thread's call counts for certain if it has returned before this one begins. */
unsigned long long osc_served(const char* mpi_function);

/** How many calls of an MPI function libosc passed on to the host MPI on windows or memory that the host serves.
 *  0 for an unknown name. Thread-safe. */
unsigned long long osc_forwarded(const char* mpi_function);

/** The value of a named statistic of this process, for example "windows.live" or "bytes.window_metadata";
 *  osc_info --counters lists the names. Returns 0 and stores the value, or -1 for an unknown name.
 *  Thread-safe at every thread level, also while another thread creates or frees a window: the call owns no window, and
 *  a window counts from the end of its creation until MPI_Win_free has begun to destroy it. A call that meets the free
 *  of a window waits until the window has left libosc's table, or the free waits for the call. */
int osc_counter(const char* name, unsigned long long* value);

/** A statistic of a window since its creation, as this process counted it, if OSC_STATS is set. `window` is
 *  MPI_Win_c2f() of the window (in the ABI of MPICH the MPI_Win itself), in the standard's ABI MPI_Win_toint(). Names:
 *  - [KIND.][PATH.][to_SIZE.]operations and [KIND.][PATH.][to_SIZE.]bytes; what is left out is added up ("operations",
 *    "put.message.to_8.bytes"). KIND: put, get, accumulate, get_accumulate, fetch_and_op, compare_and_swap, rput, rget,
 *    raccumulate, rget_accumulate; those of notify.h end in _notify. PATH: load_store, process_vm, agent, message,
 *    direct. SIZE: 8, 64, 512, 4096, 32768, 262144, 2097152 bytes at most, and more than the class before; "more" in
 *    place of to_SIZE: all larger ones.
 *  - [KIND.][PATH.]timed_operations, [KIND.][PATH.]ns, [KIND.][PATH.]waiting_ns: the operations that were timed, how
 * long they took and how much of that they waited for a lock, a post, a fence or another process. Puts and gets on
 * memory that this process loads and stores are hardly ever timed.
 *  - CALL.calls, CALL.timed_calls, CALL.ns, CALL.waiting_ns. CALL: fence, post, start, complete, wait, test, lock,
 *    unlock, lock_all, unlock_all, flush, flush_all, flush_local, flush_local_all, sync; of notify.h set_num_notify,
 *    get_notify_value, reset_notify_value, wait_notify, test_notify, wait_any_notify. A call that cannot wait is
 *    counted and not timed. waiting_ns is the time in libosc's wait loops.
 *  - locks.contended, locks.handed_over, fences_last, own_bytes.
 *
 *  Failed calls and operations on MPI_PROC_NULL are not counted. Returns 0 and stores the value, or -1 for an unknown
 *  name, a window that libosc does not serve, and without OSC_STATS. Thread-safe; no other thread may free the window
 *  meanwhile. */
int osc_window_stat(int window, const char* name, unsigned long long* value);

#ifdef __cplusplus
}
#endif

#endif
