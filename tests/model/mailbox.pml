/* The threads that read a process's mailbox: its agent, and a thread that waits now and then. One sender asks questions,
 * which it may take back; the other sends messages, whose answers it awaits. The thread that waits may watch the slot of
 * the questions; then the sender may show a question there without a link. The target's wait may end unseen (inside the
 * host). A sender loses its patience at any time; asleep it looks at nothing but the answer.
 * Claims: every sender ends (no invalid end state); each operation is executed once, by a message or by the system; no
 * link is pushed while it is in the mailbox.
 * CODE: src/net/channels/mailbox.h src/net/channels/agent.cpp src/net/channels/outbox.cpp
 * MUTATIONS: ATTEND_WITHOUT_LOCK QUIET_INSIST NO_CLAIM REUSE_WITHDRAWN WATCH_SENT
 */
#define QUESTIONS 2
#define MESSAGES 1
#define WAITS 2
#define QUESTION 0
#define MESSAGE 1

mtype = { Idle, Sent, Shown, Claimed, Answered, Withdrawn };

bool sleeper = false, rung = false, asleep = false; /* of the agent: sleep.pml has the bell */
byte attended = 0;
bool linked[2];
bool reading = false;
bool watched = false;
mtype question = Idle;
mtype message = Idle;
byte executed[2];
byte by_system = 0;
byte ended = 0;

#define ODD (attended % 2 == 1)
#define MAIL (linked[QUESTION] || linked[MESSAGE])
#ifdef WATCH_SENT
#define SHOWN (question == Shown || question == Sent)
#else
#define SHOWN (question == Shown)
#endif

inline ring() {
    d_step {
        if
        :: sleeper -> rung = true; asleep = false
        :: else -> skip
        fi
    }
}

inline change(seen) {
    d_step {
        if
        :: attended == seen -> attended++
        :: else -> skip
        fi
    }
}

inline end_of_all() {
    d_step {
        ended++;
        if
        :: ended == 3 ->
            assert(executed[QUESTION] + by_system == QUESTIONS);
            assert(executed[MESSAGE] == MESSAGES)
        :: else -> skip
        fi
    }
}

/* with `reading` */
inline serve_all() {
    d_step {
        mine[QUESTION] = linked[QUESTION];
        mine[MESSAGE] = linked[MESSAGE];
        linked[QUESTION] = false;
        linked[MESSAGE] = false
    }
    if
    :: mine[QUESTION] ->
#ifdef NO_CLAIM
        if
        :: question == Sent -> executed[QUESTION]++; question = Answered
        :: else -> question = Idle
        fi
#else
        d_step {
            claimed = (question == Sent);
            if
            :: claimed -> question = Claimed
            :: else -> question = Idle
            fi
        }
        if
        :: claimed -> executed[QUESTION]++; question = Answered
        :: else -> skip
        fi
#endif
    :: else -> skip
    fi;
    if
    :: mine[MESSAGE] -> d_step { executed[MESSAGE]++; message = Answered }
    :: else -> skip
    fi;
    d_step { mine[QUESTION] = false; mine[MESSAGE] = false; claimed = false }
}

/* With `reading`, or not at all if the thread watches the slots of others. */
inline serve_shown() {
    if
    :: d_step { SHOWN -> question = Claimed };
        d_step { executed[QUESTION]++; question = Answered }
    :: skip
    fi
}

active proctype agent() {
    bool mine[2], claimed;
end:
    do
    :: d_step { !reading -> reading = true };
        if
        :: MAIL -> serve_all(); reading = false
        :: else ->
            reading = false;
end_pause:
            do
            :: MAIL && !ODD -> break
            :: else ->
                d_step { rung = false; sleeper = true };
                if
                :: MAIL && !ODD -> sleeper = false; break
                :: else ->
                    asleep = !rung;
end_sleep:
                    d_step { !asleep -> sleeper = false }
                fi
            od
        fi
    od
}

active proctype target() {
    bool mine[2], claimed, got;
    byte seen, wait;
    for (wait : 1 .. WAITS) {
        do
        :: MAIL || !ODD || SHOWN ->
#ifdef ATTEND_WITHOUT_LOCK
            seen = attended;
            if
            :: seen % 2 == 0 -> change(seen)
            :: else -> skip
            fi;
#endif
            d_step { got = !reading; reading = true };
            if
            :: got ->
                seen = attended;
                if
                :: seen % 2 == 0 -> change(seen)
                :: else -> skip
                fi;
                serve_shown();
                if
                :: MAIL ->
                    serve_all();
#if !defined(ATTEND_WITHOUT_LOCK) && !defined(QUIET_INSIST) /* of messages, and found sooner so */
                    if
                    :: watched = !watched
                    :: skip
                    fi
#endif
                :: else -> skip
                fi;
                d_step { reading = false; seen = 0 }
            :: else -> skip
            fi;
            got = false
        :: break
        od;
        if
        :: skip /* unseen */
        :: seen = attended;
            if
            :: seen % 2 == 1 ->
                change(seen);
                if
                :: MAIL -> ring()
                :: else -> skip
                fi
            :: else -> skip
            fi
        fi
    }
    end_of_all()
}

active proctype asks() {
    byte seen, i;
    for (i : 1 .. QUESTIONS) {
        seen = attended;
        if
#ifdef REUSE_WITHDRAWN
        :: seen % 2 == 1 && (question == Idle || question == Withdrawn) ->
#else
        :: seen % 2 == 1 && question == Idle ->
#endif
            if
            :: d_step { watched -> question = Shown }
            :: else ->
                d_step {
                    question = Sent;
                    assert(!linked[QUESTION]);
                    linked[QUESTION] = true
                };
                if
                :: ODD -> skip
                :: else -> ring()
                fi
            fi;
            if
            :: d_step { question == Answered -> question = Idle }
            :: true ->
                change(seen);
                if
                :: d_step { question == Sent -> question = Withdrawn; by_system++ }
                :: d_step { question == Shown -> question = Idle; by_system++; watched = false }
                :: d_step { question == Answered -> question = Idle }
                fi
            fi
        :: else -> by_system++
        fi
    }
    end_of_all()
}

active proctype sends() {
    byte seen, i;
    for (i : 1 .. MESSAGES) {
        message = Sent;
        assert(!linked[MESSAGE]);
        linked[MESSAGE] = true;
        if
        :: ODD -> skip
        :: else -> ring()
        fi;
        if
        :: message == Answered
        :: true -> /* insists, once, and sleeps */
            seen = attended;
            if
#ifdef QUIET_INSIST
            :: MAIL && seen % 2 == 1 ->
#else
            :: MAIL ->
#endif
                if
                :: seen % 2 == 1 -> change(seen)
                :: else -> skip
                fi;
                ring()
            :: else -> skip
            fi;
            message == Answered
        fi
    }
    end_of_all()
}
