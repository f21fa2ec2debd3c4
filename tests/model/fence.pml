/* The deferred fence of src/core/strategies/fence_deferred.cpp (end_operations, await_incoming, fence), with what operations on targets of the
 * same node await (await_fence of targets.cpp; Core::announce_fence), which immediate fences on one node have too, and what the
 * target's thread makes of others (TargetService::run, resume_fenced; Arrivals::is_open, open, closed). Three processes, 0 and 1 on one node. The barriers
 * are taken for granted: barrier.pml has the node's; what all tell each other is added up in one step.
 * Each process makes FENCES fences; which of them begin epochs (and so, which carry MPI_MODE_NOPRECEDE) is chosen at the
 * start, alike for all. In each epoch it may do one operation: on its neighbour by load and store, on others by message.
 * Claims: an operation is done when its target has called the fence before it (else the target's own stores would come
 * after it), after all of earlier epochs, and before the target returns from the fence behind it; and all fences end.
 * CODE: src/core/strategies/fence_deferred.cpp src/core/fence.cpp src/net/target/target_service.cpp src/net/target/arrivals.h
 * CODE: src/net/target/arrivals.cpp
 * MUTATIONS: EXECUTED_AT_ONCE OPENED_EARLY NEIGHBOURS_GO_ON CLOSE_UNCOUNTED CLOSE_FIRST NOT_AWAITED FENCE_NOT_AWAITED
 */
#define N 3
#define FENCES 3
#define NODE(p) (p / 2)
#define MATES(p) (2 - NODE(p))

mtype = { operation, close };  /* an operation goes behind the fence of its epoch */
chan to[N * N] = [4] of { mtype, byte };

bool begins[FENCES + 1];
byte called[N];                       /* the last fence that the process has entered */
byte opened[N], closed[N];
byte told[N * (FENCES + 1)];          /* closes of others, at each fence */
byte entered[FENCES + 1];             /* the exchange of all */
byte gate[2 * (FENCES + 1)];          /* the second barrier of a node's processes */
byte issued[N * (FENCES + 1)], done[N * (FENCES + 1)];
bool news[2 * (FENCES + 1)];          /* somebody has closed an epoch to a process of the node */
byte ended = 0;

#define AT(process, epoch) (process) * (FENCES + 1) + epoch

inline perform(target, epoch) {
    d_step {
        assert(called[target] >= epoch);
        assert(called[target] <= epoch + 1);
        assert(epoch == FENCES || done[AT(target, epoch + 1)] == 0);
        done[AT(target, epoch)]++
    }
}

proctype rank(byte me) {
    byte f, t, due;
    bool used[N];
    for (f : 1 .. FENCES) {
        called[me] = f;
        if
        :: f > 1 && begins[f - 1] ->
            atomic {
                for (t : 0 .. N - 1) {
                    if
                    :: used[t] && NODE(t) != NODE(me) ->
#ifndef CLOSE_FIRST
                        to[me * N + t]!close(0);
#endif
#ifndef CLOSE_UNCOUNTED
                        told[AT(t, f)]++;
#endif
                        news[NODE(t) * (FENCES + 1) + f] = true
                    :: else
                    fi;
                    used[t] = false
                }
                entered[f]++
            }
            entered[f] == N;
            due = due + told[AT(me, f)];
            if
            :: news[NODE(me) * (FENCES + 1) + f] ->
#ifdef OPENED_EARLY
                opened[me] = f;
#endif
#ifndef NOT_AWAITED
                closed[me] >= due;
#endif
#ifndef NEIGHBOURS_GO_ON
                gate[NODE(me) * (FENCES + 1) + f]++;
                gate[NODE(me) * (FENCES + 1) + f] == MATES(me)
#endif
            :: else
            fi;
            assert(issued[AT(me, f - 1)] == done[AT(me, f - 1)])
        :: else  /* this fence awaits nobody */
        fi;
        opened[me] = f;
        if
        :: begins[f] -> atomic {
            if
            :: t = (me + 1) % N
            :: t = (me + 2) % N
            :: t = me
            fi;
            if
            :: t != me ->
                issued[AT(t, f)]++;
                used[t] = true;
                if
                :: NODE(t) == NODE(me) ->
#ifndef FENCE_NOT_AWAITED
                    if
                    :: f > 1 && begins[f - 1]  /* the code awaits it here too, for the sake of gets, which are not in here */
                    :: else -> opened[t] >= f
                    fi;
#endif
                    perform(t, f)
                :: else ->
#ifdef CLOSE_FIRST
                    to[me * N + t]!close(0);
#endif
                    to[me * N + t]!operation(f)
                fi
            :: else
            fi
        }
        :: else
        fi
    }
    ended++
}

/* The target's thread, for one origin: requests of one origin are done in their order. */
proctype thread(byte origin, me) {
    byte epoch;
end:
    do
    :: to[origin * N + me]?operation(epoch) ->
#ifndef EXECUTED_AT_ONCE
        opened[me] >= epoch;
#endif
        perform(me, epoch)
    :: to[origin * N + me]?close(epoch) -> closed[me]++
    od
}

init {
    byte f;
    /* The last fence begins nothing; a program that does nothing more need not end what a fence began. */
    for (f : 1 .. FENCES - 1) {
        if
        :: begins[f] = true
        :: skip
        fi
    }
    atomic {
        run rank(0); run rank(1); run rank(2);
        run thread(0, 2); run thread(1, 2); run thread(2, 0); run thread(2, 1)
    }
    ended == N
}
