/* The region table under its sequence lock: RegionTable::publish and RegionView::current of
 * src/shm/regions.cpp. A table is two words that must agree, at one of two places in the arena; a place that
 * was given back may be overwritten by anybody. Claims: a view that is accepted is a whole table, not older than the
 * last one published before the reader asked; a reader does not wait for ever once the owner rests.
 * WRITES_BEFORE_ODD is what a processor without release order makes of the owner, WORDS_READ_LATE of the reader without
 * acquire order: the words must not be moved by plain relaxed accesses.
 * CODE: src/shm/regions.h src/shm/regions.cpp
 * MUTATIONS: WRITES_BEFORE_ODD WORDS_READ_LATE NO_SECOND_LOOK RELEASED_EARLY
 */
#define READERS 2
#define PUBLICATIONS 3

byte version = 0;
byte place = 0;
byte words[4];        /* two places of two words each */
byte published = 0;   /* number of the last table that is wholly published, for the claim alone */

active proctype owner() {
    byte n, at;
    for (n : 1 .. PUBLICATIONS) {
        /* every second table outgrows its place */
        at = (n % 2 == 0 -> 1 - place : place);
#ifdef RELEASED_EARLY
        if
        :: at != place -> words[2 * place] = 99
        :: else -> skip
        fi;
#endif
#ifdef WRITES_BEFORE_ODD
        words[2 * at] = n;
        version++;
#else
        version++;
        words[2 * at] = n;
#endif
        words[2 * at + 1] = n;
        if
        :: at != place ->
            place = at;
            d_step { version++; published = n };
            words[2 * (1 - at)] = 99
        :: else ->
            d_step { version++; published = n }
        fi
    }
}

active [READERS] proctype reader() {
    byte before, at, first, second, least;
    least = published;
    do
    :: before = version;
        if
        :: before % 2 == 0 ->
            at = place;
            if
            :: version == before ->
#ifdef WORDS_READ_LATE
                first = words[2 * at];
                if
                :: version == before -> second = words[2 * at + 1]; break
                :: else -> skip
                fi
#else
                first = words[2 * at];
                second = words[2 * at + 1];
#ifdef NO_SECOND_LOOK
                break
#else
                if
                :: version == before -> break
                :: else -> skip
                fi
#endif
#endif
            :: else -> skip
            fi
        :: else -> skip
        fi
    od;
    assert(first == second);
    assert(first >= least)
}
