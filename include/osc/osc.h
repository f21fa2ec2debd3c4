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
 *  Fortran callers count alike; 0 for an unknown name. Exact while one thread calls MPI, approximate under
 *  MPI_THREAD_MULTIPLE. Thread-safe. */
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

#ifdef __cplusplus
}
#endif

#endif
