/* Deaths in the node lock of src/sync/lock.cpp: exclusive locks of one target by N processes, one of which may die while
 * it holds the lock or at any step of its hand-over. The sleep is left out: a waiter sees its answer, or looks for the
 * dead, at any time. Claims: every living process ends, with the lock or with the news of the death (a lost waiter is an
 * invalid end state); two never hold the lock; an answer never reaches a cell that waits for another lock by then.
 * CODE: src/sync/lock.h src/sync/lock.cpp
 * MUTATIONS: ANSWER_OUTSIDE_GUARD NEVER_LOOKS_AGAIN BREAK_TELLS_NOBODY GUARD_DIES_UNBROKEN LEAVES_ABANDONED
 */
#define N 3
#define ROUNDS 2
#define GRANTED 1
#define REFUSED 2

byte holder = 0;
bool queued = false, broken = false;
byte guard = 0, head = 0, tail = 0;
byte next[N + 1], answer[N + 1];
bool target[N + 1], waits[N + 1];
byte dead = 0;
byte inside = 0;

/* Death: the process stops for good, at most one of them. */
inline may_die() {
    if
    :: atomic { dead == 0 -> dead = me; goto died }
    :: skip
    fi
}

inline give(who, what) { d_step { assert(waits[who]); answer[who] = what } }

inline break_lock() {
    broken = true;
    head = 0; tail = 0;
    i = 1;
    do
    :: i <= N ->
        if
#ifdef BREAK_TELLS_NOBODY
        :: false -> skip
#else
        :: target[i] -> target[i] = false; give(i, REFUSED)
#endif
        :: !target[i] -> skip
#ifdef BREAK_TELLS_NOBODY
        :: target[i] -> skip
#endif
        fi;
        i++
    :: else -> break
    od
}

/* Guard: taken free, or from a dead holder, whose lock is broken then */
inline take_guard() {
    if
    :: atomic { guard == 0 -> guard = me }
    :: atomic { guard != 0 && guard == dead -> guard = me };
#ifndef GUARD_DIES_UNBROKEN
       break_lock()
#endif
    fi
}

#define abandoned (queued && holder == 0)

/* hand_over */
inline hand_over(held) {
    take_guard();
    may_die();
    first = head;
    if
    :: !(held) && !abandoned -> guard = 0
    :: else ->
    if
    :: first == 0 || broken -> d_step { holder = 0; queued = false }; guard = 0
    :: else ->
        may_die();
        head = next[first];
        if
        :: head == 0 -> tail = 0
        :: else -> skip
        fi;
        may_die();
        d_step { holder = first; queued = (head != 0) };
        may_die();
        target[first] = false;
#ifdef ANSWER_OUTSIDE_GUARD
        guard = 0;
#endif
        may_die();
        give(first, GRANTED);
        may_die();
#ifndef ANSWER_OUTSIDE_GUARD
        guard = 0
#endif
    fi
    fi
}

active [N] proctype rank() {
    byte me = _pid + 1;
    byte first, i, round;
    for (round : 1 .. ROUNDS) {
        take_guard();
        if
        :: broken -> guard = 0; goto told
        :: atomic { !broken && holder == 0 && !queued -> holder = me }; guard = 0
        :: atomic { !broken && (holder != 0 || queued) -> queued = true };
            d_step { answer[me] = 0; target[me] = true; waits[me] = true; next[me] = 0 };
            if
            :: tail != 0 -> next[tail] = me
            :: else -> head = me
            fi;
            tail = me;
            guard = 0;
            do
            :: answer[me] != 0 -> break
#ifndef LEAVES_ABANDONED
            :: answer[me] == 0 && abandoned -> hand_over(false)
#endif
            /* break_if_holder_died */
            :: dead != 0 && holder == dead && !broken ->
                take_guard(); break_lock(); guard = 0
            /* forgotten */
#ifndef NEVER_LOOKS_AGAIN
            :: (dead != 0 && guard == dead) || (broken && !target[me]) ->
                take_guard();
                if
                :: !target[me] && answer[me] == 0 -> waits[me] = false; guard = 0; goto told
                :: else -> guard = 0
                fi
#endif
            od;
            waits[me] = false;
            if
            :: answer[me] == REFUSED -> goto told
            :: else -> skip
            fi
        fi;
        d_step { inside++; assert(inside == 1 || broken) };
        inside--;
        may_die();
        if
        :: !queued && !broken -> may_die(); holder = 0
        :: queued || broken -> hand_over(true)
        fi
    }
    goto told;
died:
    skip;
told:
    skip
}
