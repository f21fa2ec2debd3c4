/* Leases of a dynamic window's regions: Window::detach, Leases of src/net/target/leases.cpp, TargetService::withdraw and
 * resume_withdrawing of src/net/target/target_service.cpp, RegionCache and Attached of src/net/origin. An owner attaches one place
 * again and again, each time with a new number, which stands for its key too, and detaches it; origins look it up, keep
 * what they are told and access it directly by that. The owner's thread answers look-ups, an origin's thread ends accesses
 * and answers withdrawals. Answers and withdrawals are sent by different threads, so either may arrive first: they have
 * channels of their own. Origin 0 accesses under the window's lock, which the owner takes to detach, as a right program
 * may; the other one's accesses are under way at any time.
 * Claims: no access begins or ends with a key that is revoked; everybody comes to his end, above all detach.
 * CODE: src/window/serve.cpp src/net/target/leases.h src/net/target/leases.cpp src/net/target/target_service.cpp
 * CODE: src/net/origin/region_cache.h src/net/origin/region_cache.cpp src/net/origin/attached.h
 * CODE: src/net/origin/attached.cpp
 * MUTATIONS: REVOKED_FIRST HOLDERS_TAKEN_FIRST NOTED_LATE CROSSING_FORGOTTEN ANSWERED_IN_USE FOUND_THEN_USED
 * MUTATIONS: USED_BEFORE_LOCK WAITS_INSIDE
 */
#define ORIGINS 2
#define REGIONS 2
#define ACCESSES 2

byte table = 0;                /* the number of the attached region; 0: none */
bool holds[ORIGINS];           /* who has been told of it */
byte revoked = 0;              /* all keys up to this one */
bool lock_of_owner, lock_of_origin;

chan asks[ORIGINS] = [1] of { bit };
chan answers[ORIGINS] = [1] of { byte };
chan withdrawals[ORIGINS] = [1] of { byte };
chan dropped[ORIGINS] = [1] of { bit };
chan under_way[ORIGINS] = [1] of { byte };
bool ended[ORIGINS];           /* the access has */

/* A RegionCache; each inline is one section of its lock. */
byte cached[ORIGINS], uses[ORIGINS];
byte retired[ORIGINS], retired_uses[ORIGINS];
bool asking[ORIGINS];
byte withdrawn[ORIGINS];       /* while asking */

inline use(o, lease) {
#ifdef FOUND_THEN_USED
    lease = cached[o];
    d_step {
        if
        :: lease != 0 && cached[o] == lease -> uses[o]++
        :: else -> skip
        fi
    }
#else
    d_step {
        lease = cached[o];
        if
        :: lease != 0 -> uses[o]++
        :: else -> skip
        fi
    }
#endif
}

inline release(o, lease) {
    d_step {
        if
        :: retired[o] == lease ->
            retired_uses[o]--;
            if
            :: retired_uses[o] == 0 -> retired[o] = 0
            :: else -> skip
            fi
        :: else -> uses[o]--
        fi
    }
}

inline keep(o, lease) {
    d_step {
        asking[o] = false;
        if
        :: lease != 0 && lease != withdrawn[o] -> cached[o] = lease
        :: else -> skip
        fi;
        withdrawn[o] = 0
    }
}

inline drop(o, lease, gone) {
    d_step {
#ifndef CROSSING_FORGOTTEN
        if
        :: asking[o] -> withdrawn[o] = lease
        :: else -> skip
        fi;
#endif
        gone = true;
        if
        :: cached[o] == lease && uses[o] == 0 -> cached[o] = 0
        :: cached[o] == lease && uses[o] != 0 ->
            retired[o] = lease;
            retired_uses[o] = uses[o];
            cached[o] = 0;
            uses[o] = 0;
            gone = false
        :: cached[o] != lease -> gone = (retired[o] != lease)
        fi;
#ifdef ANSWERED_IN_USE
        gone = true;
#endif
        skip
    }
}

active proctype owner() {
    byte n, o, due;
    bool told[ORIGINS];
    for (n : 1 .. REGIONS) {
        table = n;
        atomic { !lock_of_origin -> lock_of_owner = true };
        /* one section of the table's lock */
#ifdef HOLDERS_TAKEN_FIRST
        d_step { for (o : 0 .. ORIGINS - 1) { told[o] = holds[o]; holds[o] = false } };
        table = 0;
#else
        d_step { for (o : 0 .. ORIGINS - 1) { told[o] = holds[o]; holds[o] = false }; table = 0 };
#endif
#ifdef REVOKED_FIRST
        revoked = n;
#endif
        for (o : 0 .. ORIGINS - 1) {
            if
            :: told[o] -> withdrawals[o] ! n; due++
            :: else -> skip
            fi
        };
        do
        :: due > 0 ->
            if
            :: dropped[0] ? _ -> due--
            :: dropped[1] ? _ -> due--
            fi
        :: else -> break
        od;
        revoked = n;
        lock_of_owner = false
    }
}

active proctype thread_of_owner() {
    byte o, lease;
end:
    do
    :: atomic {
        if
        :: asks[0] ? _ -> o = 0
        :: asks[1] ? _ -> o = 1
        fi }
#ifdef NOTED_LATE
        lease = table;
        answers[o] ! lease;
        if
        :: lease != 0 -> holds[o] = true
        :: else -> skip
        fi
#else
        d_step {
            lease = table;
            if
            :: lease != 0 -> holds[o] = true
            :: else -> skip
            fi
        };
        answers[o] ! lease
#endif
    od
}

proctype origin(byte o) {
    byte i, lease;
    for (i : 1 .. ACCESSES) {
#ifdef USED_BEFORE_LOCK
        use(o, lease);
#else
        lease = 0;
#endif
        if
        :: o == 0 -> atomic { !lock_of_owner -> lock_of_origin = true }
        :: else -> skip
        fi;
        if
        :: lease == 0 -> use(o, lease)
        :: else -> skip
        fi;
        if
        :: lease == 0 ->
            asking[o] = true;
            asks[o] ! 0;
            answers[o] ? lease;
            keep(o, lease);
            use(o, lease)
        :: else -> skip
        fi;
        if
        :: lease != 0 ->
            /* the access itself, and the wait for its end */
            assert(lease > revoked);
            under_way[o] ! lease;
            atomic { ended[o] -> ended[o] = false }
        :: else -> skip
        fi;
        if
        :: o == 0 -> lock_of_origin = false
        :: else -> skip
        fi
    }
}

proctype thread_of_origin(byte o) {
    byte lease, leaving;
    bool gone;
end:
    do
    :: under_way[o] ? lease ->
        assert(lease > revoked);
        release(o, lease);
        ended[o] = true
    :: leaving == 0 && withdrawals[o] ? [leaving] ->
        withdrawals[o] ? leaving;
        drop(o, leaving, gone);
#ifdef WAITS_INSIDE
        do
        :: gone -> break
        :: else -> retired[o] != leaving -> gone = true
        od;
#endif
        if
        :: gone -> dropped[o] ! 0; leaving = 0
        :: else -> skip
        fi
    :: leaving != 0 && retired[o] != leaving ->
        drop(o, leaving, gone);
        if
        :: gone -> dropped[o] ! 0; leaving = 0
        :: else -> skip
        fi
    od
}

init {
    atomic {
        run origin(0);
        run origin(1);
        run thread_of_origin(0);
        run thread_of_origin(1)
    }
}
