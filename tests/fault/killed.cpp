// One process is killed (SIGKILL) in the middle of epochs of one kind. The survivors go on until a call reports the
// death. Their calls must return in time, with MPI_SUCCESS and the right data or with MPI_ERR_OTHER, and so must later
// calls.
//
//   test_killed KIND ROLE SHIFT [private]
//
// KIND: a kind of epoch, or of call. ROLE: the process that dies: the origin, the target, or the third, a member of the
// window without accesses. A second origin uses the same target. SHIFT rotates the roles over the ranks, so that with
// two nodes each role is on the target's node, on the other node, and the first process of its node. private: memory in
// no shared arena.
#include "killed.h"

#include <algorithm>
#include <random>
#include <string>

#pragma weak xpmem_stand_in_die
extern "C" void xpmem_stand_in_die();

namespace {

using namespace fault;

// Under the exclusive lock all words of the block are equal: a process that died while it wrote them keeps the lock for
// ever.
void exclusive_locks() {
    const int target = rank_of(kTarget);
    std::vector<long> block(kBlock);
    const bool well = !participates(g_rank) || repeat([&] {
        if (!ok("lock", [&] { return MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, g_win); })) return false;
        bool good = ok("get", [&] { return get(block, target, 0); }) &&
                    ok("flush", [&] { return MPI_Win_flush(target, g_win); });
        if (good) {
            const long value = block[0];
            check_same(block, value, "the block under the exclusive lock");
            block.assign(kBlock, value + 1);
            // In two parts, with operations of another kind between them.
            const std::vector<long> half(block.begin(), block.begin() + kBlock / 2);
            good = ok("put", [&] { return put(half, target, 0); }) &&
                   ok("accumulate", [&] { return add_one(target, kCounters); }) &&
                   ok("put", [&] { return put(half, target, kBlock / 2); });
        }
        return unlock(target, good);
    });
    must_have_noticed(well, target == g_dying && far_from(target));
}

// Each origin has its own counters in the target's memory. The target takes its lock exclusively now and then.
void shared_locks() {
    const int target = rank_of(kTarget);
    long written = 0;
    std::vector<long> own(1000);
    std::vector<long> twice(2);
    const auto origin = [&] {
        if (!ok("lock", [&] { return MPI_Win_lock(MPI_LOCK_SHARED, target, 0, g_win); })) return false;
        bool good = ok("get", [&] { return get(own, target, g_rank * 1000); }) &&
                    ok("flush", [&] { return MPI_Win_flush(target, g_win); });
        if (good) {
            check_same(own, written, "what only this process writes");
            own.assign(own.size(), ++written);
            good = ok("put", [&] { return put(own, target, g_rank * 1000); }) &&
                   ok("accumulate", [&] { return add_one(target, kCounters); });
        }
        return unlock(target, good);
    };
    const auto owner = [&] {
        if (!ok("lock", [&] { return MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, g_win); })) return false;
        const long before = g_base[kCounters];
        sleep_for(0.0002);
        check_eq(g_base[kCounters], before, "a counter under the exclusive lock");
        const bool good = unlock(target, true);
        sleep_for(0.0005);
        return good;
    };
    const bool well = !participates(g_rank) || repeat([&] { return is(kTarget) ? owner() : origin(); });
    must_have_noticed(well, target == g_dying && far_from(target));
}

// Both origins and the target count in each other's memory, where each has a counter of its own.
void lock_all() {
    long rounds = 0;
    const auto origin = [&] {
        if (!ok("lock_all", [] { return MPI_Win_lock_all(0, g_win); })) return false;
        bool good = true;
        ++rounds;
        for (const int role : {kOrigin, kTarget, kSecond}) {
            const int target = rank_of(role);
            long seen = kNothing;
            const long one = 1;
            good =
                good && ok("accumulate", [&] { return add_one(target, kCounters + g_rank); }) &&
                ok("flush", [&] { return MPI_Win_flush(target, g_win); }) &&
                ok("fetch_and_op",
                   [&] {
                       return MPI_Fetch_and_op(&one, &seen, MPI_LONG, target, kCounters + 8 + g_rank, MPI_SUM, g_win);
                   }) &&
                ok("flush_all", [] { return MPI_Win_flush_all(g_win); });
            if (good) check_eq(seen, rounds - 1, "a counter of this process");
        }
        return ok("unlock_all", [] { return MPI_Win_unlock_all(g_win); }) && good;
    };
    const auto owner = [&] {
        if (!ok("lock", [] { return MPI_Win_lock(MPI_LOCK_EXCLUSIVE, g_rank, 0, g_win); })) return false;
        const bool good = unlock(g_rank, true);
        sleep_for(0.001);
        return good;
    };
    const bool well = !participates(g_rank) || repeat([&] { return is(kTarget) ? owner() : origin(); });
    must_have_noticed(well, participates(g_dying) && !is(kTarget) && far_from(g_dying));
}

// Waits for several requests. Its error says that one of them failed; their statuses say how, and which ones are open
// still (MPI 4.1, 3.7.5): a second call waits for these.
int wait_for(int count, MPI_Request* requests) {
    int worst = MPI_SUCCESS;
    for (bool open = true; open;) {
        open = false;
        MPI_Status statuses[3];
        const int error = MPI_Waitall(count, requests, statuses);
        int kind = MPI_SUCCESS;
        if (error != MPI_SUCCESS) MPI_Error_class(error, &kind);
        if (kind != MPI_ERR_IN_STATUS) return error != MPI_SUCCESS ? error : worst;
        for (int i = 0; i < count; ++i) {
            int one = MPI_SUCCESS;
            if (statuses[i].MPI_ERROR != MPI_SUCCESS) MPI_Error_class(statuses[i].MPI_ERROR, &one);
            if (one == MPI_ERR_PENDING) {
                open = true;
                continue;
            }
            check(one == MPI_SUCCESS || one == MPI_ERR_OTHER, "the error in a status", one, MPI_ERR_OTHER);
            worst = std::max(worst, one);
        }
        check(worst != MPI_SUCCESS, "errors in the statuses", 0, 1);
    }
    return worst;
}

// Request forms; the requests must come to an end too.
void requests() {
    const int target = rank_of(kTarget);
    long written = 0;
    std::vector<long> block(kBlock / 2), back(kBlock / 2);
    const auto round = [&] {
        if (!ok("lock", [&] { return MPI_Win_lock(MPI_LOCK_SHARED, target, 0, g_win); })) return false;
        MPI_Request all[3];
        int made = 0;
        const long one = 1;
        long seen = kNothing;
        const MPI_Aint disp = is(kSecond) ? kBlock / 2 : 0;
        block.assign(block.size(), ++written);
        const auto count = static_cast<int>(block.size());
        bool good = ok("rput", [&] {
            const int error = MPI_Rput(block.data(), count, MPI_LONG, target, disp, count, MPI_LONG, g_win, &all[made]);
            if (error == MPI_SUCCESS) ++made;
            return error;
        });
        good = good && ok("raccumulate", [&] {
                   const int error = MPI_Raccumulate(&one, 1, MPI_LONG, target, kCounters + g_rank, 1, MPI_LONG,
                                                     MPI_SUM, g_win, &all[made]);
                   if (error == MPI_SUCCESS) ++made;
                   return error;
               });
        good = good && ok("rget_accumulate", [&] {
                   const int error =
                       MPI_Rget_accumulate(&one, 1, MPI_LONG, &seen, 1, MPI_LONG, target, kCounters + 8 + g_rank, 1,
                                           MPI_LONG, MPI_SUM, g_win, &all[made]);
                   if (error == MPI_SUCCESS) ++made;
                   return error;
               });
        good = ok("waitall", [&] { return wait_for(made, all); }) && good;
        good = good && ok("flush", [&] { return MPI_Win_flush(target, g_win); });
        if (good) check_eq(seen, written - 1, "a counter of this process");
        MPI_Request one_more = MPI_REQUEST_NULL;
        good = good && ok("rget", [&] {
                   back.assign(back.size(), kNothing);
                   return MPI_Rget(back.data(), count, MPI_LONG, target, disp, count, MPI_LONG, g_win, &one_more);
               });
        good = ok("wait", [&] { return MPI_Wait(&one_more, MPI_STATUS_IGNORE); }) && good;
        if (good) check_same(back, written, "what only this process writes");
        return unlock(target, good);
    };
    const bool well = !participates(g_rank) || is(kTarget) ? (dying() ? (sleep_for(60), true) : true) : repeat(round);
    must_have_noticed(well, target == g_dying && far_from(target));
}

// All meet in every round; the origins write into the target's memory, the target into the third's.
void fences() {
    const auto wrote = [](long round, int role) { return round * 4 + role; };
    const MPI_Aint part = kBlock / 2;
    std::vector<long> block(part);
    for (long round = 1;; ++round) {
        if (!ok("fence", [] { return MPI_Win_fence(0, g_win); })) break;
        bool good = true;
        for (const int role : {kOrigin, kSecond, kTarget}) {
            if (!is(role)) continue;
            block.assign(block.size(), wrote(round, role));
            const int to = rank_of(role == kTarget ? kThird : kTarget);
            good = ok("put", [&] { return put(block, to, role == kSecond ? part : 0); });
        }
        good = ok("fence", [] { return MPI_Win_fence(0, g_win); }) && good;
        if (!good) break;
        const auto holds = [&](MPI_Aint at, int role) {
            check_same({g_base + at, g_base + at + part}, wrote(round, role), "what a fence has completed");
        };
        if (is(kTarget)) {
            holds(0, kOrigin);
            holds(part, kSecond);
        }
        if (is(kThird)) holds(0, kTarget);
    }
    // Arrivals at the failed fence must not count for the dead process now.
    for (int again = 0; again < 3; ++again)
        must_report("a later fence", [] { return MPI_Win_fence(0, g_win); });
}

// The origin has two targets, of which one is an origin too.
void posts() {
    const int first = rank_of(kOrigin), second = rank_of(kSecond), last = rank_of(kTarget);
    MPI_Group origins = group_of({first, second}), targets = group_of({last, second});
    MPI_Group origin = group_of({first}), target = group_of({last});
    const bool ends = g_dying == rank_of(kThird);
    std::vector<long> block(kBlock / 2);
    const MPI_Aint part = kBlock / 2;
    const auto access = [&](MPI_Group group, std::initializer_list<int> roles, long round, MPI_Aint at) {
        bool good = ok("start", [&] { return MPI_Win_start(group, 0, g_win); });
        if (!good) return false;
        block.assign(block.size(), round);
        for (const int role : roles)
            good = ok("put", [&] { return put(block, rank_of(role), at); }) && good;
        return ok("complete", [] { return MPI_Win_complete(g_win); }) && good;
    };
    const auto wait = [&](long round, MPI_Aint count) {
        if (!ok("wait", [] { return MPI_Win_wait(g_win); })) return false;
        check_same({g_base, g_base + count}, round, "what a wait has completed");
        return true;
    };
    bool well = true;
    for (long round = 1; well && (round <= kRounds || !ends) && participates(g_rank); ++round) {
        if (is(kOrigin)) {
            well = access(targets, {kTarget, kSecond}, round, 0);
        } else if (is(kTarget)) {
            well = ok("post", [&] { return MPI_Win_post(origins, 0, g_win); }) && wait(round, 2 * part);
            if (ends) sleep_for(0.001);
        } else {
            well = ok("post", [&] { return MPI_Win_post(origin, 0, g_win); });
            if (!well) break;
            well = access(target, {kTarget}, round, part);
            // The origin lives, or this call reports its death.
            well = wait(round, part) && well;
        }
    }
    if (dying()) sleep_for(60);
    must_have_noticed(well, participates(g_rank) && participates(g_dying));
    // A process whose call failed stops here. A process that waits for it, and not for the dead one, learns of its end.
    if (participates(g_rank) && !ends) {
        meet_survivors("afterwards", false);
        meet_survivors("read", false);
        leave(false);
    }
}

// Windows come and go; the death is in the creation, or in the free.
void creations(bool free_them) {
    const int right = (g_rank + 1) % 4, left = (g_rank + 3) % 4;
    for (long round = 1;; ++round) {
        MPI_Win win = MPI_WIN_NULL;
        long* base = nullptr;
        g_stage = 1;
        if (!ok("allocate",
                [&] { return MPI_Win_allocate(64, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win); }))
            break;
        g_stage = 0;
        MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
        bool good = ok("lock", [&] { return MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, win); });
        if (good) {
            const long value = round * 10 + g_rank;
            good = ok("put", [&] { return MPI_Put(&value, 1, MPI_LONG, right, 0, 1, MPI_LONG, win); });
            good = ok("unlock", [&] { return MPI_Win_unlock(right, win); }) && good;
        }
        good = ok("fence", [&] { return MPI_Win_fence(0, win); }) && good;
        if (good) check_eq(base[0], round * 10 + left, "what the left neighbour wrote");
        g_stage = 2;
        good = ok("free", [&] { return MPI_Win_free(&win); }) && good;
        g_stage = 0;
        if (!good) break;
        if (!free_them) continue;
    }
}

// The calls that a program may make after an error.
void afterwards() {
    meet_survivors("afterwards");
    const double begin = now();
    g_scenario = "afterwards";
    // The lock and the memory of an unused process, or of this one, are unchanged.
    const int target = g_dying != rank_of(kThird) ? rank_of(kThird) : g_rank;
    std::vector<long> word(1);
    const bool left = std::strcmp(g_kind, "pscw") == 0;  // rank 0 may have: its call failed
    if (!participates(target) && two_level() && (g_dying == 0 || left || std::strcmp(g_kind, "lock_all") == 0)) {
        if (ok("lock", [&] { return MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, g_win); })) unlock(target, true);
    } else if (!participates(target)) {
        must_work("lock", [&] { return MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, g_win); });
        must_work("get", [&] { return get(word, target, kCount - 1); });
        must_work("unlock", [&] { return MPI_Win_unlock(target, g_win); });
        check_eq(word[0], 0, "data of a process that was not used");
    }
    meet_survivors("read");
    must_report("fence", [] { return MPI_Win_fence(0, g_win); });
    must_report("fence again", [] { return MPI_Win_fence(0, g_win); });
    must_report("free", [] { return MPI_Win_free(&g_win); });
    MPI_Win win = MPI_WIN_NULL;
    long* base = nullptr;
    must_report("allocate",
                [&] { return MPI_Win_allocate(64, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win); });
    check(now() - begin < kPatience, "seconds afterwards", std::lround(now() - begin), std::lround(kPatience));
}

struct Scenario {
    const char* name;
    void (*run)();
    int stage;  // in which the death comes, or 0: at any time
};

constexpr Scenario kScenarios[] = {{"fence", fences, 0},
                                   {"pscw", posts, 0},
                                   {"exclusive", exclusive_locks, 0},
                                   {"shared", shared_locks, 0},
                                   {"lock_all", lock_all, 0},
                                   {"request", requests, 0},
                                   {"create", [] { creations(false); }, 1},
                                   {"free", [] { creations(true); }, 2}};

void die_in(int stage, double after, int turns) {
    std::thread([=] {
        sleep_for(after);
        while (stage != 0 && g_stage != stage)
            std::this_thread::yield();
        for (volatile int i = 0; stage != 0 && i < turns;)
            i = i + 1;
        if (xpmem_stand_in_die != nullptr) xpmem_stand_in_die();  // its memory goes with it
        ::kill(::getpid(), SIGKILL);
    }).detach();
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    if (g_size != 4 || argc < 4) return 1;
    const Scenario* kind = nullptr;
    for (const Scenario& known : kScenarios)
        if (std::strcmp(known.name, argv[1]) == 0) kind = &known;
    const std::string role = argv[2];
    if (kind == nullptr || (role != "origin" && role != "target" && role != "third")) return 1;
    g_shift = std::atoi(argv[3]);
    g_private = argc > 4 && std::strcmp(argv[4], "private") == 0;
    g_scenario = g_kind = kind->name;
    g_dying = rank_of(role == "origin" ? kOrigin : role == "target" ? kTarget : kThird);
    make_window();
    MPI_Barrier(MPI_COMM_WORLD);
    if (dying()) {
        std::mt19937 random{std::random_device{}()};
        const double after = std::uniform_real_distribution<>(kLatest / 5, kLatest)(random);
        const int turns = std::uniform_int_distribution<>(0, 100000)(random);
        std::printf("rank %d dies after %.3f s\n", g_rank, after);
        std::fflush(stdout);
        die_in(kind->stage, after, turns);
    }
    kind->run();
    if (dying()) sleep_for(60);
    afterwards();
    leave();
}
