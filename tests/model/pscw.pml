/* Post, start, complete, wait: send_post, take_post, send_complete and take_completes of src/sync/pscw.h, called as
 * src/core/active.cpp does. Every epoch has a group per target, chosen at random; each process posts, starts,
 * completes and waits. Claims: an operation reaches its target only between that target's post and wait of the same
 * epoch; a wait returns only after all its origins completed; nobody waits for ever.
 * CODE: src/sync/pscw.h src/core/active.cpp
 * MUTATIONS: POSTS_COUNTED POST_NOT_CONSUMED COMPLETES_RESET_LATE NO_WAIT_FOR_UNUSED
 */
#define N 3
#define EPOCHS 2
#define PAIR(o, t) ((o) * N + (t))

bool member[EPOCHS * N * N]; /* whether origin o is in the group that target t posts to in epoch e */
#define MEMBER(e, o, t) member[(e) * N * N + PAIR(o, t)]

bool posted[N * N];  /* the bit of target t in the control block of origin o */
byte arrived[N];     /* POSTS_COUNTED: posts as a count */
byte completes[N];   /* the counter in the control block of the target */

byte exposed[N];     /* epoch + 1 while the target's exposure epoch is open */
byte done[N];        /* completes sent for the target's open exposure epoch, for the claim alone */

inline take_post(t) {
#ifdef POSTS_COUNTED
    atomic { arrived[me] > 0 -> arrived[me]-- }
#else
    posted[PAIR(me, t)];
#ifndef POST_NOT_CONSUMED
    posted[PAIR(me, t)] = false
#endif
#endif
}

proctype rank(byte me) {
    byte e, p, k;
    for (e : 0 .. EPOCHS - 1) {
        /* post */
        k = 0;
        d_step { exposed[me] = e + 1; done[me] = 0 };
        for (p : 0 .. N - 1) {
            if
            :: MEMBER(e, p, me) ->
                k++;
#ifdef POSTS_COUNTED
                arrived[p]++
#else
                posted[PAIR(p, me)] = true
#endif
            :: else -> skip
            fi
        }
        /* start and complete: an operation to every second target, whose post is awaited either way */
        for (p : 0 .. N - 1) {
            if
            :: MEMBER(e, me, p) ->
                if
                :: (p + me + e) % 2 == 0 -> take_post(p); assert(exposed[p] == e + 1)
#ifdef NO_WAIT_FOR_UNUSED
                :: else -> skip
#else
                :: else -> take_post(p)
#endif
                fi;
                d_step { assert(exposed[p] == e + 1); done[p]++ };
                completes[p]++
            :: else -> skip
            fi
        }
        /* wait */
        completes[me] >= k;
#ifndef COMPLETES_RESET_LATE
        completes[me] = completes[me] - k;
#endif
        d_step { assert(done[me] == k); exposed[me] = 0 }
    }
}

init {
    byte e, o, t;
    atomic {
        for (e : 0 .. EPOCHS - 1) {
            for (o : 0 .. N - 1) {
                for (t : 0 .. N - 1) {
                    /* the last target always has both others, which keeps the search short */
                    if
                    :: o == t -> skip
                    :: o != t -> MEMBER(e, o, t) = true
                    :: o != t && t != N - 1 -> MEMBER(e, o, t) = false
                    fi
                }
            }
        };
        run rank(0); run rank(1); run rank(2)
    }
}
