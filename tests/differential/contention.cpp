// The three kinds of crowd.
#include "contention.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "report.h"
#include "steps.h"

namespace diff {
namespace {

struct Spot {
    int target = -1;
    std::size_t start = 0;
    MPI_Aint disp = 0;
};

// A place for `count` elements of `bytes` bytes, all aligned, at the rank that has room; target -1 if none has.
Spot find_spot(const Place& place, std::size_t count, std::size_t bytes, Random& random) {
    Spot spot;
    for (int attempt = 0; attempt < 20; ++attempt) {
        const int target = static_cast<int>(random.below(static_cast<std::size_t>(place.ranks())));
        const std::size_t size = place.size(target);
        if (size < count * bytes) continue;
        const std::size_t step = bytes * place.unit(target);
        const std::size_t start = random.below(size - count * bytes + 1) / step * step;
        if (!place.holds(target, static_cast<std::ptrdiff_t>(start),
                         static_cast<std::ptrdiff_t>(start + count * bytes)))
            continue;
        return {target, start,
                place.displacement(target, static_cast<std::ptrdiff_t>(start), static_cast<std::ptrdiff_t>(start))};
    }
    return spot;
}

bool runs(const char* crowd, const Spot& spot) {
    return steps().take([&] {
        return std::string(crowd) + " on rank " + std::to_string(spot.target) + " at byte " +
               std::to_string(spot.start);
    });
}

int this_rank() {
    int me = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    return me;
}

// Zeroes the spot at its owner, before all others go on.
void clear(Place& place, Model& model, const Spot& spot, std::size_t bytes) {
    const std::vector<unsigned char> zero(bytes, 0);
    Bytes& memory = model[static_cast<std::size_t>(spot.target)];
    std::fill_n(memory.value.begin() + static_cast<std::ptrdiff_t>(spot.start), bytes, 0);
    std::fill_n(memory.known.begin() + static_cast<std::ptrdiff_t>(spot.start), bytes, 1);
    if (spot.target == this_rank()) {
        check_call(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, spot.target, 0, place.window()), "MPI_Win_lock");
        place.store(spot.start, zero.data(), bytes);
        check_call(MPI_Win_unlock(spot.target, place.window()), "MPI_Win_unlock");
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

// The final values, at the owner, after all are done.
void check_final(Place& place, Model& model, const Spot& spot, const std::vector<unsigned char>& want,
                 const char* what) {
    std::memcpy(model[static_cast<std::size_t>(spot.target)].value.data() + spot.start, want.data(), want.size());
    MPI_Barrier(MPI_COMM_WORLD);
    if (spot.target != this_rank()) return;
    std::vector<unsigned char> now;
    check_call(MPI_Win_lock(MPI_LOCK_SHARED, spot.target, 0, place.window()), "MPI_Win_lock");
    place.load(now);
    check_call(MPI_Win_unlock(spot.target, place.window()), "MPI_Win_unlock");
    for (std::size_t i = 0; i < want.size(); ++i)
        if (now[spot.start + i] != want[i])
            fail("byte %zu (%zu bytes into the counters at %zu) is 0x%02x, not 0x%02x, after %s", spot.start + i, i,
                 spot.start, now[spot.start + i], want[i], what);
}

// Gives others the time to come between two accesses, on a machine with fewer cores than ranks too.
void hesitate(Random& jitter) {
    if (!jitter.once_in(3)) return;
    const timespec pause{0, 50000};
    ::nanosleep(&pause, nullptr);
}

const Basic& basic_of(MPI_Datatype type) {
    return *std::find_if(basics().begin(), basics().end(), [&](const Basic& basic) { return basic.type == type; });
}

const Basic& storm_basic(Random& random) {
    for (;;) {
        const Basic& basic = random.pick(basics());
        if (basic.countable || (basic.group == Group::Floating && basic.width <= 8)) return basic;
    }
}

}  // namespace

void storm(Place& place, Model& model, Coverage& coverage, Random& random, Random& jitter) {
    const Basic& basic = storm_basic(random);
    const std::size_t count = random.pick<std::size_t>({1, 4, 64, 1000});
    const int times = count == 1 ? 300 : count <= 64 ? 150 : 30;
    const bool fenced = random.once_in(3);
    const Spot spot = find_spot(place, count, basic.width, random);
    if (spot.target < 0) return;
    const Sync sync = fenced ? Sync::Fence : random.once_in(2) ? Sync::FlushAll : Sync::LockShared;
    if (!runs("storm", spot)) return;
    context().sync = "storm";
    clear(place, model, spot, count * basic.width);
    std::vector<unsigned char> ones(count * basic.width);
    for (std::size_t i = 0; i < count; ++i)
        basic.make_number(1, ones.data() + i * basic.width);
    std::vector<unsigned char> old(static_cast<std::size_t>(times) * count * basic.width);  // incomplete together
    const MPI_Win win = place.window();
    const int n = static_cast<int>(count);
    if (sync == Sync::Fence) {
        check_call(MPI_Win_fence(0, win), "MPI_Win_fence");
    } else if (sync == Sync::FlushAll) {
        check_call(MPI_Win_lock_all(0, win), "MPI_Win_lock_all");
    } else {
        check_call(MPI_Win_lock(MPI_LOCK_SHARED, spot.target, 0, win), "MPI_Win_lock");
    }
    MPI_Barrier(MPI_COMM_WORLD);  // so that all add at the same time
    for (int i = 0; i < times; ++i) {
        unsigned char* const before = old.data() + static_cast<std::size_t>(i) * count * basic.width;
        if (i % 3 == 0) {
            MPI_Accumulate(ones.data(), n, basic.type, spot.target, spot.disp, n, basic.type, MPI_SUM, win);
        } else if (i % 3 == 1) {
            MPI_Get_accumulate(ones.data(), n, basic.type, before, n, basic.type, spot.target, spot.disp, n, basic.type,
                               MPI_SUM, win);
        } else {
            MPI_Fetch_and_op(ones.data(), before, basic.type, spot.target, spot.disp, MPI_SUM, win);
        }
        if (sync == Sync::LockShared) MPI_Win_flush(spot.target, win);
        if (jitter.once_in(50)) ::sched_yield();
    }
    if (sync == Sync::Fence) {
        check_call(MPI_Win_fence(MPI_MODE_NOSUCCEED, win), "MPI_Win_fence");
    } else if (sync == Sync::FlushAll) {
        check_call(MPI_Win_unlock_all(win), "MPI_Win_unlock_all");
    } else {
        check_call(MPI_Win_unlock(spot.target, win), "MPI_Win_unlock");
    }
    for (const Call call : {Call::Accumulate, Call::GetAccumulate, Call::FetchAndOp})
        coverage.note(place.flavor(), sync, call, basic, Shape::Plain, Shape::Plain);
    std::vector<unsigned char> want(count * basic.width);
    for (std::size_t i = 0; i < count; ++i) {
        const int each = i == 0 ? times : times - times / 3;
        basic.make_number(static_cast<long>(each) * place.ranks(), want.data() + i * basic.width);
    }
    check_final(place, model, spot, want, "accumulates of 1 by all ranks");
}

void exclusive_counting(Place& place, Model& model, Coverage& coverage, Random& random, Random& jitter) {
    const std::size_t words = random.pick<std::size_t>({1, 2, 50});
    const int times = 12;
    const Spot spot = find_spot(place, words, sizeof(long), random);
    const bool everybody = random.once_in(2);  // else all but rank 0 only read
    const bool by_lock_all = random.once_in(2);
    if (spot.target < 0 || !runs("exclusive counting", spot)) return;
    context().sync = "exclusive counting";
    clear(place, model, spot, words * sizeof(long));
    const MPI_Win win = place.window();
    const int n = static_cast<int>(words);
    const bool writer = everybody || this_rank() == 0;
    std::vector<long> seen(words);
    for (int i = 0; i < times; ++i) {
        if (writer) {
            check_call(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, spot.target, 0, win), "MPI_Win_lock");
        } else if (by_lock_all) {
            check_call(MPI_Win_lock_all(0, win), "MPI_Win_lock_all");
        } else {
            check_call(MPI_Win_lock(MPI_LOCK_SHARED, spot.target, 0, win), "MPI_Win_lock");
        }
        MPI_Get(seen.data(), n, MPI_LONG, spot.target, spot.disp, n, MPI_LONG, win);
        MPI_Win_flush(spot.target, win);
        for (const long word : seen)
            if (word != seen[0])
                fail("half of a change made under an exclusive lock was seen: %ld and %ld", word, seen[0]);
        hesitate(jitter);
        if (writer) {
            for (long& word : seen)
                ++word;
            // In two halves, so that an access between them shows.
            const int half = n / 2;
            MPI_Put(seen.data(), half, MPI_LONG, spot.target, spot.disp, half, MPI_LONG, win);
            MPI_Win_flush(spot.target, win);
            hesitate(jitter);
            MPI_Put(seen.data(), n, MPI_LONG, spot.target, spot.disp, n, MPI_LONG, win);
        } else {
            const long before = seen[0];
            MPI_Get(seen.data(), n, MPI_LONG, spot.target, spot.disp, n, MPI_LONG, win);
            MPI_Win_flush(spot.target, win);
            if (seen[0] != before) fail("a value changed from %ld to %ld under a shared lock", before, seen[0]);
        }
        if (!writer && by_lock_all) {
            check_call(MPI_Win_unlock_all(win), "MPI_Win_unlock_all");
        } else {
            check_call(MPI_Win_unlock(spot.target, win), "MPI_Win_unlock");
        }
    }
    for (const Call call : {Call::Put, Call::Get})
        coverage.note(place.flavor(), Sync::LockExclusive, call, basic_of(MPI_LONG), Shape::Plain, Shape::Plain);
    const std::vector<long> total(words, static_cast<long>(times) * (everybody ? place.ranks() : 1));
    std::vector<unsigned char> want(words * sizeof(long));
    std::memcpy(want.data(), total.data(), want.size());
    check_final(place, model, spot, want, "counting under exclusive locks");
}

void swap_loop(Place& place, Model& model, Coverage& coverage, Random& random) {
    const int times = 30;
    const Spot spot = find_spot(place, 1, sizeof(int), random);
    if (spot.target < 0 || !runs("compare-and-swap loop", spot)) return;
    context().sync = "compare-and-swap loop";
    clear(place, model, spot, sizeof(int));
    const MPI_Win win = place.window();
    check_call(MPI_Win_lock_all(0, win), "MPI_Win_lock_all");
    int guess = 0;
    for (int i = 0; i < times; ++i) {
        for (;;) {
            const int next = guess + 1;
            int found = -1;
            check_call(MPI_Compare_and_swap(&next, &guess, &found, MPI_INT, spot.target, spot.disp, win),
                       "MPI_Compare_and_swap");
            check_call(MPI_Win_flush(spot.target, win), "MPI_Win_flush");
            const bool won = found == guess;
            if (!won && found < guess) fail("a counter went back from %d to %d", guess, found);
            guess = won ? next : found;
            if (won) break;
        }
    }
    check_call(MPI_Win_unlock_all(win), "MPI_Win_unlock_all");
    coverage.note(place.flavor(), Sync::Flush, Call::CompareAndSwap, basic_of(MPI_INT), Shape::Plain, Shape::Plain);
    const int total = times * place.ranks();
    std::vector<unsigned char> want(sizeof total);
    std::memcpy(want.data(), &total, sizeof total);
    check_final(place, model, spot, want, "counting by compare-and-swap");
}

}  // namespace diff
