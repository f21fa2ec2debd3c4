/* Sleeping and waking: shm::wait_slow and Doorbell::ring of src/shm/wait.h, with sleeps that never time out.
 * The condition of a waiter is its own flag; all sleep at one bell, and a notifier raises the flags one by one.
 * Claim: nobody sleeps for ever (an invalid end state). The order of the notifier's change and its look at the sleepers
 * is what sequential consistency of both buys: LOOK_FIRST is what a processor may do without it, and CHECK_FIRST the
 * same on the waiter's side.
 * CODE: src/shm/wait.h src/shm/wait.cpp
 * MUTATIONS: LOOK_FIRST CHECK_FIRST WORD_READ_LATE NO_WAKE
 */
#define WAITERS 2
#define ROUNDS 2

byte word = 0, sleepers = 0;
bool asleep[WAITERS];
byte flag[WAITERS];

active [WAITERS] proctype waiter() {
    byte seen, round;
    for (round : 1 .. ROUNDS) {
        do
        :: flag[_pid] >= round -> break
        :: else ->
#ifndef WORD_READ_LATE
            seen = word;
#endif
#ifdef CHECK_FIRST
            if
            :: flag[_pid] >= round -> break
            :: else -> skip
            fi;
            seen = word;
            sleepers++;
#else
            sleepers++;
            if
            :: flag[_pid] >= round -> sleepers--; break
            :: else -> skip
            fi;
#endif
#ifdef WORD_READ_LATE
            seen = word;
#endif
            /* futex_wait: compares and falls asleep in one step */
            atomic {
                if
                :: word == seen -> asleep[_pid] = true
                :: else -> skip
                fi
            };
            !asleep[_pid];
            sleepers--
        od
    }
}

active proctype notifier() {
    byte round, who;
    bool look;
    for (round : 1 .. ROUNDS) {
        for (who : 0 .. WAITERS - 1) {
#ifdef LOOK_FIRST
            look = (sleepers != 0);
            flag[who]++;
#else
            flag[who]++;
            look = (sleepers != 0);
#endif
            if
            :: look ->
                word++;
#ifndef NO_WAKE
                d_step { asleep[0] = false; asleep[1] = false }
#endif
            :: else -> skip
            fi
        }
    }
}
