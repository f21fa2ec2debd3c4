/* The order of deferred locks (src/strategy/deferred_lock.{h,cpp}): two processes on two nodes, two windows, one lock in each
 * for each process, and two threads in process 0. MPI_Win_lock of the own process's lock acquires it at once (the fast path).
 * Of the other process's it returns at once; the lock is acquired by the thread's next MPI_Win_lock, whatever window that
 * is of, or by its flush. Every thread asks for its locks in ascending order, so no order of events may end in a deadlock
 * (an invalid end state). Two threads that ask for one lock stand for two processes of the node.
 * A blocked lock blocks its thread only: process 1 holds its lock of window 0 until thread 1 of process 0 has
 * had a lock of its own.
 * CODE: src/strategy/deferred_lock.h src/strategy/deferred_lock.cpp
 * MUTATIONS: FAST_PATH_IGNORES_DEFERRED ONE_RECORD_PER_WINDOW NO_ORDER
 * MUTATIONS: ONE_RECORD_PER_PROCESS UNLOCK_LEAVES_RECORD FREE_WHILE_ACQUIRING
 */
#define NONE 255
#define LOCKS 4                      /* lock w * 2 + p: window w, process p */

byte holder[LOCKS];                  /* thread + 1, or 0 */
bool window_lives = true;            /* window 0, in the scenario of another thread's unlock */

/* What a thread knows of its last deferred lock: Deferred, Acquiring, Ended. */
#define ENDED 0
#define PENDING 1
#define ACQUIRING 2

inline acquire(lock) {
    atomic { holder[lock] == 0 || holder[lock] == me -> holder[lock] = me }
}

#ifdef ONE_RECORD_PER_WINDOW
#define is_due (deferred != NONE && deferred / 2 == asked / 2)
#else
#define is_due (deferred != NONE)
#endif

/* acquire_deferred_lock: the thread's, of whatever window */
inline acquire_deferred() {
    if
#ifndef NO_ORDER
    :: is_due -> acquire(deferred); deferred = NONE
    :: !is_due -> skip
#else
    :: true -> skip
#endif
    fi
}

/* MPI_Win_lock */
inline win_lock() {
    if
    :: asked % 2 == process ->
#ifndef FAST_PATH_IGNORES_DEFERRED
        acquire_deferred();
#endif
        acquire(asked)
    :: else ->
        acquire_deferred();
        deferred = asked
    fi;
    wanted[asked] = true
}

/* Each thread asks for a subset of the locks in ascending order, flushes all, and gives all back. */
proctype in_order(byte me; byte process) {
    byte deferred = NONE;
    byte asked, i;
    bool wanted[LOCKS];
    asked = 0;
    do
    :: asked < LOCKS ->
        if
        :: win_lock()
        :: skip
        fi;
        asked++
    :: else -> break
    od;
    /* flush: operations need their locks, in the order of the targets */
    for (i : 0 .. LOCKS - 1) {
        if
        :: wanted[i] -> acquire(i); assert(holder[i] == me)
        :: else -> skip
        fi
    }
    deferred = NONE;
    for (i : 0 .. LOCKS - 1) {
        if
        :: wanted[i] -> assert(holder[i] == me); holder[i] = 0
        :: else -> skip
        fi
    }
}

/* Thread 0 of process 0 has a deferred lock that process 1 holds until thread 1 of process 0 has had a free one. */
bool had_free = false;
byte record_of_process = NONE;       /* the mutation's only record */
byte done_threads = 0;

proctype holding_process() {
    holder[1] = 9;
    done_threads++;
    had_free -> holder[1] = 0
}

proctype blocked_thread() {
    byte me = 1;
    done_threads >= 1;
    record_of_process = 1;
    acquire(1);                      /* its unlock, which waits */
    holder[1] = 0
}

proctype free_thread() {
    byte me = 2;
    done_threads >= 1;
#ifdef ONE_RECORD_PER_PROCESS
    if
    :: record_of_process != NONE -> acquire(1)
    :: else -> skip
    fi;
#endif
    acquire(2);
    holder[2] = 0;
    had_free = true
}

/* One thread asks for a lock of window 0 and then for one of window 1, while another thread unlocks the first and frees
 * window 0. The first must not use the window behind its free. */
byte state = ENDED;
bool asked_first = false;

proctype asking_thread() {
    byte me = 1;
    bool mine = false;
    state = PENDING;
    asked_first = true;
#ifdef UNLOCK_LEAVES_RECORD
    mine = true;
#else
    atomic { if :: state == PENDING -> state = ACQUIRING; mine = true :: else -> skip fi };
#endif
    if
    :: mine ->
        assert(window_lives);        /* await_lock */
        assert(window_lives);        /* the record leaves the window's list */
        state = ENDED
    :: else -> skip
    fi;
    acquire(2);
    holder[2] = 0
}

proctype ending_thread() {
    asked_first;
#ifdef FREE_WHILE_ACQUIRING
    atomic { if :: state == PENDING -> state = ENDED :: else -> skip fi };
#else
    atomic { state != ACQUIRING -> state = ENDED };
#endif
    window_lives = false
}

init {
    if
    :: atomic { run in_order(1, 0); run in_order(2, 1) }
    :: atomic { run in_order(1, 0); run in_order(2, 0); run in_order(3, 1) }
    :: atomic { run holding_process(); run blocked_thread(); run free_thread() }
    :: atomic { run asking_thread(); run ending_thread() }
    fi
}
