/* The order of deferred locks (src/core/lock_order.{h,cpp}): two processes on two nodes, two windows, one lock in each
 * for each process. MPI_Win_lock of the own process's lock acquires it at once (the fast path). Of the other process's it
 * returns at once; the lock is acquired by the process's next MPI_Win_lock, whatever window and thread that is of, or by a
 * flush. Every process asks for its locks in ascending order, each in one of two threads, so no order of events may end in a
 * deadlock (an invalid end state). Processes that ask for one lock stand for processes of one node.
 * A process whose threads call at the same time (MPI_THREAD_MULTIPLE) defers no lock, so that a blocked lock blocks its
 * thread only: process 1 holds its lock of window 0 until thread 1 of process 0 has had a lock of its own.
 * CODE: src/core/lock_order.h src/core/lock_order.cpp
 * MUTATIONS: FAST_PATH_IGNORES_DEFERRED ONE_RECORD_PER_WINDOW ONE_RECORD_PER_THREAD NO_ORDER
 * MUTATIONS: DEFERS_BESIDE_THREADS UNLOCK_LEAVES_RECORD FREE_WHILE_ACQUIRING PASSES_WHILE_ACQUIRING
 */
#define NONE 255
#define LOCKS 4                      /* lock w * 2 + p: window w, process p */

byte holder[LOCKS];                  /* process + 1, or 0 */
bool window_lives = true;            /* window 0, in the scenario of another thread's unlock */

/* The last deferred lock of a process: Deferred, Acquiring, Ended. */
#define ENDED 0
#define PENDING 1
#define ACQUIRING 2

inline acquire(lock) {
    atomic { holder[lock] == 0 || holder[lock] == me -> holder[lock] = me }
}

#ifdef ONE_RECORD_PER_WINDOW
#define is_due (deferred[0] != NONE && deferred[0] / 2 == asked / 2)
#else
#define is_due (deferred[record] != NONE)
#endif

/* LockOrder::acquire, of whatever window */
inline acquire_deferred() {
    if
#ifndef NO_ORDER
    :: is_due -> acquire(deferred[record]); deferred[record] = NONE
    :: !is_due -> skip
#else
    :: true -> skip
#endif
    fi
}

/* MPI_Win_lock, in either thread: the program orders its threads' calls. */
inline win_lock() {
#ifdef ONE_RECORD_PER_THREAD
    if
    :: record = 0
    :: record = 1
    fi;
#endif
    if
    :: asked % 2 == process ->
#ifndef FAST_PATH_IGNORES_DEFERRED
        acquire_deferred();
#endif
        acquire(asked)
    :: else ->
        acquire_deferred();
        deferred[record] = asked
    fi;
    wanted[asked] = true
}

/* Each process asks for a subset of the locks in ascending order, flushes all, and gives all back. */
proctype in_order(byte me; byte process) {
    byte deferred[2];
    byte asked, i, record;
    bool wanted[LOCKS];
    deferred[0] = NONE;
    deferred[1] = NONE;
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
    for (i : 0 .. LOCKS - 1) {
        if
        :: wanted[i] -> assert(holder[i] == me); holder[i] = 0
        :: else -> skip
        fi
    }
}

/* Thread 0 of process 0 asks for a lock that process 1 holds until thread 1 of process 0 has had a free one. Thread 0 may
 * wait for thread 1 then. */
bool had_free = false;
byte record_of_process = NONE;       /* the mutation's */
byte begun = 0;

proctype holding_process() {
    holder[1] = 9;
    begun++;
    had_free -> holder[1] = 0
}

proctype blocked_thread() {
    byte me = 1;
    begun >= 1;
#ifdef DEFERS_BESIDE_THREADS
    record_of_process = 1;
    had_free;
#endif
    acquire(1);
    had_free;
    holder[1] = 0
}

proctype free_thread() {
    byte me = 2;
    begun >= 1;
    if
    :: record_of_process != NONE -> acquire(1)
    :: else -> skip
    fi;
    acquire(2);
    holder[2] = 0;
    had_free = true
}

/* The process has deferred a lock of window 0. Two threads that it makes then ask for one of window 1, and the process
 * unlocks the first and frees window 0 once a thread has begun. No thread may use the window behind its free, and none may
 * have its lock before the deferred one is acquired or ended. */
byte state = PENDING;
bool asked_first = false;
bool acquired = false;

proctype asking_thread() {
    byte me = 1;
    bool mine = false;
    asked_first = true;
#ifdef UNLOCK_LEAVES_RECORD
    mine = true;
#else
    do
    :: atomic { state == PENDING -> state = ACQUIRING; mine = true }; break
    :: state == ENDED -> break
#ifdef PASSES_WHILE_ACQUIRING
    :: state == ACQUIRING -> break
#endif
    od;
#endif
    if
    :: mine ->
        assert(window_lives);        /* await_lock */
        assert(window_lives);
        acquired = true;
        state = ENDED
    :: else -> skip
    fi;
    assert(acquired || !window_lives || state == ENDED);
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
    :: atomic { run asking_thread(); run asking_thread(); run ending_thread() }
    fi
}
