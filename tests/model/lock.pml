/* The node lock of src/sync/lock.{h,cpp}: the word, the queue and the hand-over, by N processes on one target.
 * Claims: a writer excludes everybody, readers exclude writers; nobody who queues is forgotten (a lost waiter is an
 * invalid end state). The sleep is modelled apart, in sleep.pml: here a waiter simply blocks until it is granted, or
 * sees a word that has been left to it.
 * A writer's release is a look, a store and another look, of which the processor may do the last before the store.
 * A PASSING process is inside a lock_all and asks for one more shared lock (LockContext::inside_lock_all): it joins past
 * the queue and stands first in it, so that a hand-over may find the word another's, or handed over already.
 * CODE: src/sync/lock.h src/sync/lock.cpp
 * MUTATIONS: MARK_BEFORE_GUARD READERS_OVERTAKE KEEP_TAIL HAND_OVER_ANYWAY
 * MUTATIONS: PASS_FORGETS_QUEUE PASS_KEEPS_TAIL_EMPTY NO_RESCUE STORE_WHOLE_WORD LATE_HAND_OVER_ANYWAY
 */
#ifndef N
#define N 3
#endif
#define ROUNDS 2
#define SHARED 1
#define EXCLUSIVE 2
#define PASSING 3

/* The 64-bit word: its fields change together, in one atomic step. */
byte holder = 0;    /* rank + 1 of the exclusive holder */
byte readers = 0;   /* number of shared holders */
bool queued = false;

byte guard = 0;
byte head = 0, tail = 0;
byte next[N + 1], kind[N + 1];
bool granted[N + 1];

byte inside_readers = 0, inside_writers = 0;

inline take_guard() { atomic { guard == 0 -> guard = me } }
inline drop_guard() { guard = 0 }

/* try_lock_exclusive, try_lock_shared */
inline try_lock() {
    got = false;
    atomic {
        if
        :: what == EXCLUSIVE && holder == 0 && readers == 0 && !queued -> holder = me; got = true
#ifdef READERS_OVERTAKE
        :: what != EXCLUSIVE && holder == 0 -> readers++; got = true
#else
        :: what != EXCLUSIVE && holder == 0 && !queued -> readers++; got = true
#endif
        :: else -> skip
        fi
    }
}

/* is_abandoned */
#define abandoned (queued && holder == 0 && readers == 0)

/* take_or_mark: one compare-and-swap, either taking the word or setting the queue bit */
inline take_or_mark() {
    atomic {
        if
        :: holder == 0 && (!queued || (what == PASSING && !abandoned)) && (what != EXCLUSIVE || readers == 0) ->
            got = true;
            if
            :: what != EXCLUSIVE -> readers++
            :: else -> holder = me
            fi
#ifdef PASS_FORGETS_QUEUE
            ; queued = false
#endif
        :: else -> queued = true; got = false
        fi
    }
}

/* hand_over. What the guard alone protects is done in one step, and so is taking
 * it and finding nothing to do. */
inline hand_over(held) {
    if
#ifndef HAND_OVER_ANYWAY
    :: !(held) && !abandoned
    :: atomic { guard == 0 && (held || abandoned) -> guard = me };
#else
    :: atomic { guard == 0 -> guard = me };
#endif
    if
    :: head == 0 -> d_step { holder = 0; readers = 0; queued = false }; drop_guard()
    :: else ->
        atomic {
            first = head;
            many = 0;
            if
            :: kind[first] == EXCLUSIVE -> last = next[first]
            :: else ->
                last = first;
                do
                :: last != 0 && kind[last] == SHARED -> many++; last = next[last]
                :: else -> break
                od
            fi;
            head = last;
#ifndef KEEP_TAIL
            if
            :: last == 0 -> tail = 0
            :: else -> skip
            fi
#endif
        };
        d_step {
            holder = (many == 0 -> first : 0);
            readers = many;
            queued = (last != 0)
        };
        do
        :: first != last -> d_step { granted[first] = true; first = next[first] }
        :: else -> break
        od;
        skip; d_step { drop_guard(); first = 0; last = 0; many = 0 } /* fewer states */
    fi
    fi
}

/* lock_wait */
inline lock_wait() {
#ifdef MARK_BEFORE_GUARD
    take_or_mark();
    take_guard();
#else
    take_guard();
    take_or_mark();
#endif
    if
    :: got -> drop_guard()
    :: else ->
        atomic {
            granted[me] = false;
            next[me] = 0;
            kind[me] = (what == EXCLUSIVE -> EXCLUSIVE : SHARED);
            if
            :: what == PASSING && head != 0 -> next[me] = head; head = me
            :: else ->
                if
                :: tail != 0 -> next[tail] = me
                :: else -> head = me
                fi;
#ifdef PASS_KEEPS_TAIL_EMPTY
                if
                :: what != PASSING -> tail = me
                :: else -> skip
                fi
#else
                tail = me
#endif
            fi
        };
        drop_guard();
        do
        :: granted[me] -> break
#ifndef NO_RESCUE
        :: !granted[me] && abandoned -> hand_over(false)
#endif
        od
    fi
}

/* unlock_exclusive, unlock_shared */
inline unlock() {
    if
    :: what == EXCLUSIVE ->
        if
        :: queued -> hand_over(true)
        :: !queued ->
#ifdef STORE_WHOLE_WORD
            d_step { holder = 0; queued = false };
#else
            holder = 0;
#endif
            if
            :: true
#ifdef LATE_HAND_OVER_ANYWAY
            :: queued -> hand_over(true)
#else
            :: queued -> hand_over(false)
#endif
            fi
        fi
    :: else ->
        atomic { pass = (queued && readers == 1); readers-- };
        if
        :: pass -> hand_over(false)
        :: else -> skip
        fi
    fi;
    skip; d_step { got = false; pass = false; what = 0 } /* fewer states */
}

active [N] proctype rank() {
    byte me = _pid + 1;
    byte what, first, last, many, i;
    bool got, pass;
    for (i : 1 .. ROUNDS) {
        if
        :: what = SHARED
        :: what = EXCLUSIVE
        :: what = PASSING
        fi;
        try_lock();
        if
        :: got -> skip
        :: else -> lock_wait()
        fi;
        if
        :: what != EXCLUSIVE ->
            inside_readers++;
            assert(inside_writers == 0);
            inside_readers--
        :: else ->
            inside_writers++;
            assert(inside_writers == 1 && inside_readers == 0);
            inside_writers--
        fi;
        unlock()
    }
}
