/* The two-level locks of src/sync/two_level.{h,cpp}: join, part, exclude, enter, leave, lock, unlock, lock_all, unlock_all,
 * by N processes on TARGETS local words and the global one. Each atomic of the network is one step. Each process makes
 * any number of epochs of any kind: shared or exclusive on any target, exclusive on two (in ascending order), lock_all.
 * An operation under a lock is begun, and has ended at its target when it was flushed (Core::settle).
 * Claims: no operation under an exclusive lock meets another one on that target, under whatever lock; all epochs can
 * end, and leave the words as they were. Who waits is woken here as soon as the word permits it; the code looks now and
 * then (BackOff). So this shows that nobody waits for something that cannot come, and not how long anybody waits: two
 * who enter opposite halves of a word at once both go out again, and could do so for ever, which the random length of
 * their rests makes as unlikely as one likes. Deaths are not in here: see tests/unit/sync_two_level_test.cpp.
 * CODE: src/sync/two_level.h src/sync/two_level.cpp
 * MUTATIONS: GLOBAL_SKIPPED LOCK_ALL_BLIND SHARED_BLIND ADDED_NOT_SWAPPED GIVEN_BACK_UNFLUSHED LEFT_EARLY
 * MUTATIONS: NOT_TAKEN_BACK ENTERED_TWICE
 */
#ifndef N
#define N 3
#endif
#define TARGETS 2

/* A word's halves; they change together, in one atomic step. The sums of ranks are for the dead only. */
byte all = 0, excluding = 0;                      /* global */
byte shared[TARGETS], exclusive[TARGETS];         /* local */

byte working[TARGETS], alone[TARGETS];            /* operations under way: under any lock, under an exclusive one */

inline begin(target) { d_step { working[target]++; assert(alone[target] == 0) } }
inline begin_alone(target) { d_step { assert(working[target] == 0); working[target]++; alone[target]++ } }
inline end(target) { working[target]-- }
inline end_alone(target) { d_step { working[target]--; alone[target]-- } }

/* join: enters `half`; if the other one is not free, goes out (part) and waits. */
inline join(half, other) {
    do
    :: atomic { half++; free = (other == 0) };
        if
        :: free -> break
        :: else ->
#ifndef NOT_TAKEN_BACK
            half--;
#endif
            other == 0
        fi
    od;
    free = false
}

/* TwoLevel::enter and leave */
inline enter() {
    if
    :: exclusives == 0 ->
#ifndef GLOBAL_SKIPPED
        join(excluding, all)
#endif
    :: else ->
#ifdef ENTERED_TWICE
        join(excluding, all)
#endif
    fi;
    exclusives++
}

inline leave() {
    exclusives--;
    if
    :: exclusives == 0 ->
#ifndef GLOBAL_SKIPPED
        excluding--
#endif
    :: else
    fi
}

/* TwoLevel::lock, exclusive: enter and exclude */
inline lock_exclusive(target) {
    enter();
#ifdef ADDED_NOT_SWAPPED
    exclusive[target] == 0 && shared[target] == 0;
    exclusive[target]++
#else
    atomic { exclusive[target] == 0 && shared[target] == 0 -> exclusive[target]++ }
#endif
}

inline unlock_exclusive(target) {
    exclusive[target]--;
    leave()
}

proctype rank() {
    byte exclusives, t;
    bool free;
    do
    :: break
    :: true ->
        if
        :: t = 0
        :: t = 1
        fi;
        if
        :: true -> /* shared */
#ifdef SHARED_BLIND
            shared[t]++;
#else
            join(shared[t], exclusive[t]);
#endif
            begin(t);
#ifdef GIVEN_BACK_UNFLUSHED
            shared[t]--;
            end(t)
#else
            end(t);
            shared[t]--
#endif
        :: true -> /* exclusive */
            lock_exclusive(t);
            begin_alone(t);
#ifdef LEFT_EARLY
            leave();
            end_alone(t);
            exclusive[t]--
#else
            end_alone(t);
            unlock_exclusive(t)
#endif
        :: true -> /* two at once */
            lock_exclusive(0);
            lock_exclusive(1);
            atomic { begin_alone(0); begin_alone(1) };
            end_alone(0);
            unlock_exclusive(0);
            end_alone(1);
            unlock_exclusive(1)
        :: true -> /* lock_all, with an operation on one of the targets */
#ifdef LOCK_ALL_BLIND
            all++;
#else
            join(all, excluding);
#endif
            begin(t);
            end(t);
            all--
        fi;
        t = 0 /* fewer states */
    od
}

init {
    byte i;
    atomic {
        for (i : 1 .. N) { run rank() }
    }
    _nr_pr == 1;
    for (i : 0 .. TARGETS - 1) { assert(shared[i] == 0 && exclusive[i] == 0) }
    assert(all == 0 && excluding == 0)
}
