/* The barrier of src/shm/barrier.h (arrive_and_wait, give_up), used ROUNDS times by N processes, one of which
 * may die at any time. Who is told of the death comes again all the same.
 * Claims: nobody gets through a round before all have entered it; nobody is left behind.
 * CODE: src/shm/barrier.h
 * MUTATIONS: RESET_AFTER_RELEASE GENERATION_READ_LATE NO_RESET GIVEN_UP_UNBROKEN BROKEN_UNSEEN
 */
#define N 3
#define ROUNDS 3

byte arrived = 0, generation = 0;
byte entered[ROUNDS + 1];
bool dead = false, broken = false;

inline may_die() {
    if
    :: atomic { !dead -> dead = true; goto died }
    :: skip
    fi
}

active [N] proctype rank() {
    byte round, now, mine;
    for (round : 1 .. ROUNDS) {
        may_die();
        if
        :: broken -> goto told
        :: else -> skip
        fi;
        entered[round]++;
#ifndef GENERATION_READ_LATE
        now = generation;
#endif
        d_step { arrived++; mine = arrived };
        may_die();
#ifdef GENERATION_READ_LATE
        now = generation;
#endif
        if
        :: mine == N ->
#ifdef RESET_AFTER_RELEASE
            generation++;
            arrived = 0
#else
#ifndef NO_RESET
            arrived = 0;
#endif
            generation++
#endif
        :: else ->
            if
            :: generation != now -> skip
#ifdef BROKEN_UNSEEN
            :: dead && !broken && generation == now -> broken = true; goto told
#else
            :: broken && generation == now -> goto told
#ifdef GIVEN_UP_UNBROKEN
            :: dead && generation == now -> goto told
#else
            :: dead && generation == now -> broken = true; goto told
#endif
#endif
            fi
        fi;
        assert(entered[round] == N);
told:
        skip
    }
died:
    skip
}
