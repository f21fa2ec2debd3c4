/* The node lock of src/sync/lock.{h,cpp}: the word, the queue and the hand-over, by N processes on one target.
 * Claims: a writer excludes everybody, readers exclude writers; nobody who queues is forgotten (a lost waiter is an
 * invalid end state). The sleep is modelled apart, in sleep.pml: here a waiter simply blocks until it is granted.
 * MUTATIONS: MARK_BEFORE_GUARD NEXT_AFTER_GRANT READERS_OVERTAKE KEEP_TAIL NO_HAND_OVER
 */
#ifndef N
#define N 3
#endif
#define ROUNDS 2
#define SHARED 1
#define EXCLUSIVE 2

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
        :: what == SHARED && holder == 0 -> readers++; got = true
#else
        :: what == SHARED && holder == 0 && !queued -> readers++; got = true
#endif
        :: else -> skip
        fi
    }
}

/* take_or_mark: one compare-and-swap, either taking the word or setting the queue bit */
inline take_or_mark() {
    atomic {
        if
        :: holder == 0 && !queued && (what == SHARED || readers == 0) ->
            got = true;
            if
            :: what == SHARED -> readers++
            :: else -> holder = me
            fi
        :: else -> queued = true; got = false
        fi
    }
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
        granted[me] = false;
        next[me] = 0;
        kind[me] = what;
        if
        :: tail != 0 -> next[tail] = me
        :: else -> head = me
        fi;
        tail = me;
        drop_guard();
        granted[me]
    fi
}

/* hand_over */
inline hand_over() {
    take_guard();
    first = head;
    if
    :: first == 0 -> d_step { holder = 0; readers = 0; queued = false }; drop_guard()
    :: else ->
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
        fi;
#endif
        d_step {
            holder = (many == 0 -> first : 0);
            readers = many;
            queued = (last != 0)
        };
        drop_guard();
        do
        :: first != last ->
            at = first;
#ifdef NEXT_AFTER_GRANT
            granted[at] = true;
            first = next[at]
#else
            first = next[at];
            granted[at] = true
#endif
        :: else -> break
        od
    fi
}

/* unlock_exclusive, unlock_shared */
inline unlock() {
    pass = false;
    atomic {
        if
        :: what == EXCLUSIVE && !queued -> holder = 0
        :: what == EXCLUSIVE && queued -> pass = true
        :: else -> pass = (queued && readers == 1); readers--
        fi
    };
#ifdef NO_HAND_OVER
    pass = (what == EXCLUSIVE && pass);
#endif
    if
    :: pass -> hand_over()
    :: else -> skip
    fi
}

active [N] proctype rank() {
    byte me = _pid + 1;
    byte what, first, last, many, at, i;
    bool got, pass;
    for (i : 1 .. ROUNDS) {
        if
        :: what = SHARED
        :: what = EXCLUSIVE
        fi;
        try_lock();
        if
        :: got -> skip
        :: else -> lock_wait()
        fi;
        if
        :: what == SHARED ->
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
