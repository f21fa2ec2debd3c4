/* The barrier of src/transport/shm/barrier.h (arrive_and_wait), used ROUNDS times by N processes.
 * Claims: nobody leaves a round before all have entered it; nobody is left behind.
 * MUTATIONS: RESET_AFTER_RELEASE GENERATION_READ_LATE NO_RESET
 */
#define N 4
#define ROUNDS 3

byte arrived = 0, generation = 0;
byte entered[ROUNDS + 1];

active [N] proctype rank() {
    byte round, now, mine;
    for (round : 1 .. ROUNDS) {
        entered[round]++;
#ifndef GENERATION_READ_LATE
        now = generation;
#endif
        d_step { arrived++; mine = arrived };
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
        :: else -> generation != now
        fi;
        assert(entered[round] == N)
    }
}
