/* Looking up the addresses of a node: Directory::look_up and LookUpRequest of src/net/directory.cpp, for two processes of one
 * node and the two keepers of the addresses. Keepers and the first process may die at any time, and the second one may
 * leave the team while its request is open.
 * Claims: only the process that the word names changes it, so an answer never meets a later look-up; no process waits for
 * ever (an invalid end state); a process finds that there is no way only if both keepers have died.
 * CODE: src/net/directory.cpp src/net/directory.h
 * MUTATIONS: TAKES_FROM_LIVING KEEPS_WORD LEAVES_WORD LATE_ANSWER NO_TAKE_OVER ASKS_ONE
 */
#define UNASKED 0
#define KNOWN 9
#define NOBODY 2

byte word = UNASKED;             /* or the process that asks, plus one */
bool keeper_dead[2], dead[2], left[2];
byte asked[2] = NOBODY;          /* the keeper that each process has asked */
byte done = 0;

inline die(which) {
    if
    :: which = true
    :: skip
    fi
}

active [2] proctype process() {
    byte seen, keepers = 0;
    byte me = _pid, other = 1 - _pid;
    bool won;
    do
    :: dead[me] -> break
    :: !dead[me] ->
        seen = word;
        if
        :: seen == KNOWN -> break
        :: seen == me + 1 ->
            /* the second process may leave while it waits */
            if
            :: word != me + 1 || dead[me] -> skip
            :: me == 1 ->
                atomic {
                    if
                    :: asked[me] != NOBODY ->
                        left[me] = true;
#ifndef LEAVES_WORD
                        word = UNASKED
#endif
                    :: else -> skip
                    fi
                };
                if
                :: left[me] -> break
                :: else -> skip
                fi
            fi
#ifndef TAKES_FROM_LIVING
        :: seen == other + 1 && !dead[other] ->
            word != seen || dead[other] || dead[me]
#endif
#ifdef NO_TAKE_OVER
        :: seen == other + 1 && dead[other] ->
            word != seen || dead[me]
        :: seen == UNASKED ->
#else
        :: else ->
#endif
            if
#ifdef ASKS_ONE
            :: keepers == 1 ->
#else
            :: keepers == 2 ->
#endif
                assert(dead[me] || (keeper_dead[0] && keeper_dead[1]));
                break
            :: else ->
                atomic {
                    won = (word == seen && !dead[me]);
                    if
                    :: won -> word = me + 1; asked[me] = keepers; keepers++
                    :: else -> skip
                    fi
                }
            fi
        fi
    od;
    done++
}

/* What handles the answers of a process; a dead keeper's request is answered too. */
active [2] proctype handler() {
    byte me = _pid - 2;
    do
    :: asked[me] != NOBODY && !dead[me] ->
        atomic {
            if
            :: dead[me] -> skip
#ifndef LATE_ANSWER
            :: !dead[me] && left[me] -> skip
#endif
            :: else ->
                assert(word == me + 1);
                if
                :: !keeper_dead[asked[me]] -> word = KNOWN
#ifndef KEEPS_WORD
                :: keeper_dead[asked[me]] -> word = UNASKED
#else
                :: keeper_dead[asked[me]] -> skip
#endif
                fi
            fi;
            asked[me] = NOBODY
        }
    :: done == 2 && asked[me] == NOBODY -> break
    :: dead[me] -> break
    od
}

active proctype deaths() {
    die(keeper_dead[0]);
    die(dead[0]);
    die(keeper_dead[1])
}
