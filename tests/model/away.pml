/* The away cells of a lock: how the network thread of the target (src/net/target/target_locks.cpp: lock, unlock, resume_queue) takes
 * the lock's word and stands in its queue for processes of other nodes (src/sync/lock.cpp: take_or_queue, lock_ask,
 * lock_answered, hand_over), beside the processes of the node (lock_wait). One cell stands for the first of those who
 * ask, the others wait in line behind it; a second cell and line are for the shared locks asked for inside a lock_all
 * (PASSING). Who gets the lock exclusively by the first cell has those that wait in line by then, and want the same, follow
 * (turns, hand_off), unless somebody inside a lock_all stands in the queue. What is done under the queue's guard is one step here: lock.pml and death.pml take it apart. A process
 * inside a lock_all does not let go while another such request waits, because both may need each other elsewhere.
 * Claims: a writer excludes everybody, readers exclude writers; every request is answered (a lost one is an invalid end
 * state) and only once; a cell is not used again before it was answered; nobody is refused.
 * away_turns.pml is the same with three processes of other nodes. away_death.pml has a death: there breaking the lock (break_lock, break_if_holder_died, orphaned, TargetService::died) is part
 * of it.
 * CODE: src/net/target/target_locks.cpp src/sync/lock.h src/sync/lock.cpp
 * MUTATIONS: AWAY_NOT_ANSWERED CELL_USED_AGAIN LINE_NOT_RESUMED STILL_IN_THE_QUEUE ONE_LINE
 * MUTATIONS: ANSWER_NOT_AWAITED CLEARED_AFTERWARDS MATE_LEAVES_ABANDONED TARGET_LEAVES_ABANDONED TAKES_ABANDONED
 */
#ifndef LOCALS
#define LOCALS 2
#define AWAYS 2
#endif
#ifndef ANY_KIND
#define ANY_KIND true
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

inline choose(what, any, mates) {
    atomic {
        if
        :: any -> what = SHARED
        :: what = EXCLUSIVE
        :: (any || mates) -> what = PASSING; passing++
        fi
    }
}

proctype mate(byte me) {
    byte what, got, first, last, many, cell;
    bool pass;
    choose(what, ANY_KIND, true);
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
#ifndef MATE_LEAVES_ABANDONED
            :: atomic { answer[me] == 0 && ABANDONED -> hand_over(SHARED) }
#endif
#ifdef DEATH
            /* break_if_holder_died */
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
    choose(what, ANY_KIND, false);
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

/* The target's network thread. In line, the first `turns` follow the holder. */
byte line_rank[AWAYS + 1], line_what[AWAYS + 1], in_line, turns;
chan passing_line = [AWAYS] of { byte, byte };

inline join_line() {
    d_step { line_rank[in_line] = rank; line_what[in_line] = what; in_line++ }
}
/* The one at `turns`. */
inline leave_line() {
    d_step {
        in_line--;
        last = turns;
        do
        :: last < in_line -> line_rank[last] = line_rank[last + 1]; line_what[last] = line_what[last + 1]; last++
        :: else -> break
        od;
        line_rank[in_line] = 0; line_what[in_line] = 0; last = 0
    }
}

inline answer_request(rank, what, got) {
    d_step {
        if
        :: got == GRANTED -> held[rank] = what
        :: else -> skip
        fi;
        reply[rank] = got
    }
}

/* TargetService::lock, for those inside a lock_all */
inline ask_passing() {
    if
#ifndef CELL_USED_AGAIN
    :: nempty(passing_line) -> passing_line!rank,what
    :: empty(passing_line) ->
#else
    :: true ->
#endif
        ask_for(PASSING_CELL, what);
        if
#ifdef ANSWER_NOT_AWAITED
        :: got == 0 -> passing_in_queue = true; answer_request(rank, what, GRANTED)
#else
        :: got == 0 -> passing_in_queue = true; passing_line!rank,what
#endif
        :: else -> answer_request(rank, what, got)
        fi
    fi;
    got = 0
}
inline ask_for(cell_, what_) {
    d_step { take_or_queue(cell_, rank, what_, got) };
#ifdef CLEARED_AFTERWARDS
    answer[cell_] = 0;
#endif
}
/* The same for the others */
inline ask() {
    if
#ifndef CELL_USED_AGAIN
    :: in_line > 0 -> join_line()
    :: in_line == 0 ->
#else
    :: true ->
#endif
        ask_for(AWAY_CELL, what);
        if
#ifdef ANSWER_NOT_AWAITED
        :: got == 0 -> in_queue = true; answer_request(rank, what, GRANTED)
#else
        :: got == 0 -> in_queue = true; join_line()
#endif
        :: else -> answer_request(rank, what, got)
        fi
    fi;
    got = 0
}

/* TargetService::resume_queue, where there is something to do */
#ifdef LINE_NOT_RESUMED
#define WORTH(in_queue, cell) (in_queue && answer[cell] != 0)
#else
#define WORTH(in_queue, cell) (!in_queue || answer[cell] != 0)
#endif
inline resume_passing() {
    passing_line?<rank,what>;
    look(passing_in_queue, PASSING_CELL);
    if
    :: got != 0 -> passing_line?rank,what; answer_request(rank, what, got)
    :: else -> skip
    fi;
    got = 0
}
inline look(in_queue_, cell_) {
    if
    :: in_queue_ ->
        got = answer[cell_];
#ifndef STILL_IN_THE_QUEUE
        in_queue_ = false
#endif
    :: else ->
        d_step { take_or_queue(cell_, rank, what, got) };
        in_queue_ = (got == 0)
    fi
}
inline resume() {
    d_step { rank = line_rank[turns]; what = line_what[turns] };
    look(in_queue, AWAY_CELL);
    if
    :: got != 0 ->
        leave_line();
        d_step {
            turns = 0;
            if
            :: got == GRANTED && what == EXCLUSIVE ->
                do
                :: turns < in_line && line_what[turns] == EXCLUSIVE -> turns++
                :: else -> break
                od
            :: else -> skip
            fi
        };
        answer_request(rank, what, got)
    :: else -> skip
    fi;
    got = 0
}

/* hand_off by TargetService::unlock: true if the next in line has the lock now */
inline hand_off() {
    d_step {
        got = 0;
        if
        :: turns == 0 -> skip
        :: turns > 0 && !broken && head != 0 && passes[head] ->
#ifndef CELL_NOT_RENAMED
            if
            :: stands[AWAY_CELL] -> kind[AWAY_CELL] = EXCLUSIVE; names[AWAY_CELL] = line_rank[0]
            :: else -> skip
            fi;
#endif
            turns = 0
        :: turns > 0 && !broken && !(head != 0 && passes[head]) ->
            assert(holder == rank);
#ifndef TURN_WHILE_HELD
            holder = line_rank[0];
#endif
            got = GRANTED
        :: turns > 0 && broken -> turns = 0
        fi
    };
    if
    :: got == GRANTED ->
        d_step {
            last = turns; turns = 0; rank = line_rank[0];
            what = EXCLUSIVE
        };
        many = last;
        leave_line();
        turns = many - 1;
        many = 0;
        answer_request(rank, what, GRANTED)
    :: else -> skip
    fi
}

proctype target() {
    byte rank, what, got, first, last, many, cell, releases;
    bool pass, in_queue, passing_in_queue;
end:
    do
    :: atomic {
        asked?rank,what;
        if
        :: what == UNLOCK -> skip
#ifndef ONE_LINE
        :: what == PASSING -> ask_passing()
        :: what == SHARED || what == EXCLUSIVE -> ask()
#else
        :: what != UNLOCK -> ask()
#endif
        fi };
        if
        :: what == UNLOCK ->
            what = held[rank];
            held[rank] = 0;
            releases = rank;
            if
            :: what == EXCLUSIVE -> atomic { hand_off() }
            :: else -> skip
            fi;
            if
            :: got == GRANTED -> got = 0
            :: got == 0 && what != 0 ->
                release(rank, what, TARGET)
            :: else -> skip
            fi;
            reply[releases] = DONE;
            releases = 0
        :: else -> skip
        fi;
        d_step { rank = 0; what = 0 }
    :: atomic {
        nempty(passing_line) && WORTH(passing_in_queue, PASSING_CELL) ->
        resume_passing();
        rank = 0; what = 0 }
    :: atomic {
        in_line > turns && WORTH(in_queue, AWAY_CELL) ->
        resume();
        rank = 0; what = 0 }
#ifndef TARGET_LEAVES_ABANDONED
    :: atomic { (in_queue || passing_in_queue) && ABANDONED -> hand_over(SHARED) }
#endif
#ifdef DEATH
    :: atomic { dead == 0 -> dead = TARGET; goto died }
    /* look_for_dead: break_if_holder_died, for requests that wait; died, for those of other nodes that hold */
#ifndef NEVER_LOOKS
    :: atomic { (in_line > 0 || nempty(passing_line)) && !broken && HELD_BY_THE_DEAD -> break_lock() }
#endif
#ifndef DEAD_HOLDS_ON
    :: atomic { dead > LOCALS && dead <= RANKS && held[dead] != 0 && (queued || in_line > 0) -> held[dead] = 0; turns = 0; break_lock() }
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
