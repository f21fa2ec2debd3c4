/* The away cells of a lock: how the network thread of the target (src/agent/hosted.cpp: lock, unlock, resume_queue) takes
 * the lock's word and stands in its queue for processes of other nodes (src/sync/lock.cpp: take_or_queue, lock_ask,
 * lock_answered, hand_over), beside the processes of the node (lock_wait). One cell stands for the first of those who
 * ask, the others wait in line behind it; a second cell and line are for the shared locks asked for inside a lock_all
 * (PASSING). What is done under the queue's guard is one step here: lock.pml and death.pml take it apart. A process
 * inside a lock_all does not let go while another such request waits, because both may need each other elsewhere.
 * Claims: a writer excludes everybody, readers exclude writers; every request is answered (a lost one is an invalid end
 * state) and only once; a cell is not used again before it was answered; nobody is refused.
 * away_death.pml is the same with a death: there breaking the lock (break_lock, given_up, orphaned, Hosted::died) is part
 * of it.
 * MUTATIONS: AWAY_NOT_ANSWERED CELL_USED_AGAIN UNLOCK_HANDS_NOTHING_OVER LINE_NOT_RESUMED STILL_IN_THE_QUEUE ONE_LINE
 * MUTATIONS: ANSWER_NOT_AWAITED CLEARED_AFTERWARDS
 */
#ifndef LOCALS
#define LOCALS 2
#define AWAYS 2
#endif

#define SHARED 1
#define EXCLUSIVE 2
#define PASSING 3
#define UNLOCK 4

#define GRANTED 1
#define REFUSED 2
#define DONE 3

/* Ranks: 1 to LOCALS on the node, then the others, then the target. Cells: a local process's own, the target's two. */
#define RANKS (LOCALS + AWAYS)
#define TARGET (RANKS + 1)
#define AWAY_CELL (LOCALS + 1)
#define PASSING_CELL (LOCALS + 2)
#define CELLS (LOCALS + 2)

#include "away_queue.inc"

/* A process inside: it has the lock, and does not leave before all requests inside a lock_all have theirs. */
inline enter(what) {
    atomic {
        if
        :: what == EXCLUSIVE -> writers_inside++
        :: else -> readers_inside++
        fi;
        if
        :: what == PASSING -> passing--
        :: else -> skip
        fi;
        assert(writers_inside == 0 || (writers_inside == 1 && readers_inside == 0))
    }
}
inline leave(what) {
    atomic {
#ifdef DEATH
        true ->
#else
        (what != PASSING || passing == 0) ->
#endif
        if
        :: what == EXCLUSIVE -> writers_inside--
        :: else -> readers_inside--
        fi
    }
}

inline choose(what) {
    atomic {
        if
        :: what = SHARED
        :: what = EXCLUSIVE
        :: what = PASSING; passing++
        fi
    }
}

proctype mate(byte me) {
    byte what, got, first, last, many, cell;
    bool pass;
    choose(what);
    atomic {
#ifdef DEATH
        noted[me] = (what != EXCLUSIVE);
#endif
        /* try_lock_exclusive, try_lock_shared */
        if
        :: !broken && !queued && holder == 0 && (what != EXCLUSIVE || readers == 0) ->
            got = GRANTED;
            if
            :: what == EXCLUSIVE -> holder = me
            :: else -> readers++
            fi
        :: else -> got = 0
        fi
    };
    if
    :: got == 0 ->
        d_step { take_or_queue(me, me, what, got) };
#ifdef CLEARED_AFTERWARDS
        answer[me] = 0;
#endif
        MAY_DIE(me);
        if
        :: got == 0 ->
            do
            :: atomic { answer[me] != 0 -> got = answer[me]; break }
#ifdef DEATH
            /* given_up */
            :: atomic { answer[me] == 0 && !broken && (HELD_BY_THE_DEAD || ORPHANED) -> break_lock() }
#endif
            od
        :: else -> skip
        fi
    :: else -> skip
    fi;
    if
    :: got == REFUSED ->
        assert(dead != 0);
        goto died
    :: else -> skip
    fi;
    enter(what);
    MAY_DIE(me);
    leave(what);
    release(me, what, me);
#ifdef DEATH
    noted[me] = false;
#endif
died:
    skip; d_step { what = 0; got = 0 } /* fewer states */
}

proctype distant(byte me) {
    byte what, got;
    choose(what);
    asked!me,what;
    MAY_DIE(me);
    atomic {
        if
        :: reply[me] != 0 -> got = reply[me]; reply[me] = 0
        :: dead == TARGET -> got = REFUSED
        fi
    };
    if
    :: got == REFUSED ->
        assert(dead != 0);
        goto died
    :: else -> skip
    fi;
    enter(what);
    MAY_DIE(me);
    leave(what);
    asked!me,UNLOCK;
    reply[me] == DONE || dead == TARGET;
died:
    skip; d_step { what = 0; got = 0 } /* fewer states */
}

/* The target's network thread. */
chan line = [AWAYS] of { byte, byte };
chan passing_line = [AWAYS] of { byte, byte };

inline answer_request(rank, what, got) {
    d_step {
        if
        :: got == GRANTED -> held[rank] = what
        :: else -> skip
        fi;
        reply[rank] = got
    }
}

/* Hosted::lock */
inline ask(queue, cell, in_queue) {
    if
#ifndef CELL_USED_AGAIN
    :: nempty(queue) -> queue!rank,what
    :: empty(queue) ->
#else
    :: true ->
#endif
        d_step { take_or_queue(cell, rank, what, got) };
#ifdef CLEARED_AFTERWARDS
        answer[cell] = 0;
#endif
        if
#ifdef ANSWER_NOT_AWAITED
        :: got == 0 -> in_queue = true; answer_request(rank, what, GRANTED)
#else
        :: got == 0 -> in_queue = true; queue!rank,what
#endif
        :: else -> answer_request(rank, what, got)
        fi
    fi;
    got = 0
}

/* Hosted::resume_queue, where there is something to do */
#ifdef LINE_NOT_RESUMED
#define RESUMABLE(queue, cell, in_queue) (nempty(queue) && in_queue && answer[cell] != 0)
#else
#define RESUMABLE(queue, cell, in_queue) (nempty(queue) && (!in_queue || answer[cell] != 0))
#endif
inline resume(queue, cell, in_queue) {
    queue?<rank,what>;
    if
    :: in_queue ->
        got = answer[cell];
#ifndef STILL_IN_THE_QUEUE
        in_queue = false
#endif
    :: else ->
        d_step { take_or_queue(cell, rank, what, got) };
        in_queue = (got == 0)
    fi;
    if
    :: got != 0 -> queue?rank,what; answer_request(rank, what, got)
    :: else -> skip
    fi;
    got = 0
}

proctype target() {
    byte rank, what, got, first, last, many, cell;
    bool pass, in_queue, passing_in_queue;
end:
    do
    :: atomic {
        asked?rank,what;
        if
        :: what == UNLOCK -> skip
#ifndef ONE_LINE
        :: what == PASSING -> ask(passing_line, PASSING_CELL, passing_in_queue)
        :: what == SHARED || what == EXCLUSIVE -> ask(line, AWAY_CELL, in_queue)
#else
        :: what != UNLOCK -> ask(line, AWAY_CELL, in_queue)
#endif
        fi };
        if
        :: what == UNLOCK ->
            what = held[rank];
            held[rank] = 0;
            if
            :: what != 0 ->
#ifdef UNLOCK_HANDS_NOTHING_OVER
                d_step {
                    if
                    :: what == EXCLUSIVE -> holder = 0
                    :: else -> readers--
                    fi
                }
#else
                release(rank, what, TARGET)
#endif
            :: else -> skip
            fi;
            reply[rank] = DONE
        :: else -> skip
        fi;
        d_step { rank = 0; what = 0 }
    :: atomic {
        RESUMABLE(passing_line, PASSING_CELL, passing_in_queue) ->
        resume(passing_line, PASSING_CELL, passing_in_queue);
        rank = 0; what = 0 }
    :: atomic {
        RESUMABLE(line, AWAY_CELL, in_queue) ->
        resume(line, AWAY_CELL, in_queue);
        rank = 0; what = 0 }
#ifdef DEATH
    :: atomic { dead == 0 -> dead = TARGET; goto died }
    /* look_for_dead: break_if_dead, for requests that wait; died, for those of other nodes that hold */
#ifndef NEVER_LOOKS
    :: atomic { (nempty(line) || nempty(passing_line)) && !broken && HELD_BY_THE_DEAD -> break_lock() }
#endif
#ifndef DEAD_HOLDS_ON
    :: atomic { dead > LOCALS && dead <= RANKS && held[dead] != 0 && queued -> held[dead] = 0; break_lock() }
#endif
#endif
    od;
died:
    skip
}

init {
    byte i;
    atomic {
        for (i : 1 .. LOCALS) { run mate(i) }
        for (i : LOCALS + 1 .. RANKS) { run distant(i) }
        run target()
    }
}
