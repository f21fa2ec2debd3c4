// Rank 1 is killed while it holds locks of every kind, owes a post, a complete and a fence, and executes accumulates.
// Each survivor must get an error of class MPI_ERR_OTHER within seconds from every call that needs the dead process;
// other calls must work with the right data. One window for each situation, one death. Arguments name the parts to run;
// without arguments all run.
#include <sys/uio.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "debug_setting.h"
#include "osc/notify_fallback.h"
#include "survivors.h"

namespace {

using namespace fault;

enum Situation {
    kExclusive,
    kShared,
    kLockAll,
    kPost,
    kNoPost,
    kComplete,
    kTest,
    kNotify,
    kFence,
    kMemory,
    kRun,
    kStripes,
    kFree,
    kAll
};

constexpr int kElements = 1 << 16;

MPI_Win g_wins[kAll];
long* g_bases[kAll];

void make_windows() {
    for (int i = 0; i < kAll; ++i) {
        const MPI_Aint elements = i == kStripes ? kElements : 64;
        const MPI_Aint bytes = elements * static_cast<MPI_Aint>(sizeof(long));
        if (i == kMemory || i == kRun) {
            g_bases[i] = static_cast<long*>(std::malloc(static_cast<std::size_t>(bytes)));
            MPI_Win_create(g_bases[i], bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &g_wins[i]);
        } else {
            MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &g_bases[i], &g_wins[i]);
        }
        MPI_Win_set_errhandler(g_wins[i], MPI_ERRORS_RETURN);
        for (MPI_Aint e = 0; e < elements; ++e)
            g_bases[i][e] = i * 100 + g_rank;
    }
    OSC_Win_set_num_notify(g_wins[kNotify], MPI_INFO_NULL, 2);
}

long read(MPI_Win win, int target) {
    long value = -1;
    must_work("lock", [&] { return MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win); });
    must_work("get", [&] { return MPI_Get(&value, 1, MPI_LONG, target, 0, 1, MPI_LONG, win); });
    must_work("unlock", [&] { return MPI_Win_unlock(target, win); });
    return value;
}

// The lock cannot be acquired. If the target is on another node, the lock call only sends a request, and the call that
// completes the epoch reports the error.
void must_not_get(const char* what, int type, MPI_Win win) {
    must_report(what, [&] {
        const int error = MPI_Win_lock(type, 0, 0, win);
        return error != MPI_SUCCESS ? error : MPI_Win_unlock(0, win);
    });
}

[[noreturn]] void victim() {
    // After a flush the process holds the lock, on any node.
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, g_wins[kExclusive]);
    MPI_Win_flush(0, g_wins[kExclusive]);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, g_wins[kShared]);
    MPI_Win_flush(0, g_wins[kShared]);
    long value = 0;
    MPI_Win_lock_all(0, g_wins[kLockAll]);
    MPI_Get(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, g_wins[kLockAll]);
    MPI_Win_flush(0, g_wins[kLockAll]);
    MPI_Group zero = group_of({0});
    MPI_Win_post(zero, 0, g_wins[kPost]);
    MPI_Win_start(zero, 0, g_wins[kComplete]);
    MPI_Barrier(MPI_COMM_WORLD);
    kill_self_after(0.1);  // into its accumulates
    const std::vector<long> ones(kElements, 1);
    MPI_Win_lock_all(0, g_wins[kStripes]);
    for (;;)
        MPI_Accumulate(ones.data(), kElements, MPI_LONG, 0, 0, kElements, MPI_LONG, MPI_SUM, g_wins[kStripes]);
}

void locks_held_by_the_dead() {
    g_scenario = "exclusive";
    must_not_get("lock", MPI_LOCK_EXCLUSIVE, g_wins[kExclusive]);
    must_not_get("second lock", MPI_LOCK_SHARED, g_wins[kExclusive]);
    check_eq(read(g_wins[kExclusive], 2), kExclusive * 100 + 2, "data of a target that the dead did not lock");
    g_scenario = "shared";
    must_not_get("lock", MPI_LOCK_EXCLUSIVE, g_wins[kShared]);
    check_eq(read(g_wins[kShared], 2), kShared * 100 + 2, "data of a target that the dead did not lock");
    g_scenario = "lock_all";
    must_not_get("lock", MPI_LOCK_EXCLUSIVE, g_wins[kLockAll]);
}

void posts_and_completes_of_the_dead() {
    MPI_Group dead = group_of({kVictim});
    const long value = 5;
    if (g_rank == 0) {
        // The post came before the death: the epoch may go through or fail, but not hang.
        g_scenario = "post";
        must_return("start", [&] { return MPI_Win_start(dead, 0, g_wins[kPost]); });
        must_return("put", [&] { return MPI_Put(&value, 1, MPI_LONG, kVictim, 0, 1, MPI_LONG, g_wins[kPost]); });
        must_return("complete", [] { return MPI_Win_complete(g_wins[kPost]); });
        g_scenario = "complete";
        MPI_Win_post(dead, 0, g_wins[kComplete]);
        must_report("wait", [] { return MPI_Win_wait(g_wins[kComplete]); });
        // A complete of another origin might be left of that epoch.
        must_report("post", [&] { return MPI_Win_post(dead, 0, g_wins[kComplete]); });
    }
    g_scenario = "no post";
    must_work("start", [&] { return MPI_Win_start(dead, 0, g_wins[kNoPost]); });
    must_report("complete", [] { return MPI_Win_complete(g_wins[kNoPost]); });
    // The epoch that needed the dead process has ended, and its live targets have their completes.
    g_scenario = "one of two posts";
    const MPI_Win win = g_wins[kNoPost];
    MPI_Group both = group_of({kVictim, 2}), zero = group_of({0});
    if (g_rank == 0) {
        must_work("start", [&] { return MPI_Win_start(both, 0, win); });
        must_work("put", [&] { return MPI_Put(&value, 1, MPI_LONG, 2, 1, 1, MPI_LONG, win); });
        must_report("complete", [&] { return MPI_Win_complete(win); });
    } else if (g_rank == 2) {
        must_work("post", [&] { return MPI_Win_post(zero, 0, win); });
        must_work("wait", [&] { return MPI_Win_wait(win); });
        check_eq(g_bases[kNoPost][1], value, "what the living origin wrote");
    }
}

void tests_for_the_dead() {
    MPI_Group dead = group_of({kVictim});
    g_scenario = "test";
    MPI_Win_post(dead, 0, g_wins[kTest]);
    must_report("test", [] {
        int error = MPI_SUCCESS, done = 0;
        for (const double end = now() + kPatience; error == MPI_SUCCESS && !done && now() < end;)
            error = MPI_Win_test(g_wins[kTest], &done);
        return error;
    });
}

// A notification that has come counts; one that the dead process might have sent is not awaited for ever.
void notifications_of_the_dead() {
    g_scenario = "notify";
    const MPI_Win win = g_wins[kNotify];
    must_work("lock", [&] { return MPI_Win_lock(MPI_LOCK_SHARED, g_rank, 0, win); });
    must_work("put", [&] { return OSC_Put_notify(nullptr, 0, MPI_BYTE, g_rank, 0, 0, MPI_BYTE, 0, win); });
    must_work("wait", [&] { return OSC_Win_wait_notify(win, 0, 1, nullptr); });
    must_report("wait for more", [&] { return OSC_Win_wait_notify(win, 0, 2, nullptr); });
    must_report("wait for any", [&] { return OSC_Win_wait_any_notify(win, 0, 2, 2, nullptr, nullptr); });
    must_report("test", [&] {
        int error = MPI_SUCCESS, flag = 0;
        for (const double end = now() + kPatience; error == MPI_SUCCESS && !flag && now() < end;)
            error = OSC_Win_test_notify(win, 0, 2, &flag, nullptr);
        return error;
    });
    must_work("unlock", [&] { return MPI_Win_unlock(g_rank, win); });
}

// Whether the victim's private memory is reached by process_vm_*.
bool g_reaches_victim = false;

bool reaches(int rank, const void* address) {
    struct Place {
        std::int64_t pid = ::getpid();
        const void* address = nullptr;
    };
    Place mine;
    mine.address = address;
    std::vector<Place> all(static_cast<std::size_t>(g_size));
    MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, MPI_COMM_WORLD);
    const Place& there = all[static_cast<std::size_t>(rank)];
    long word = 0;
    const iovec to{&word, sizeof word};
    const iovec from{const_cast<void*>(there.address), sizeof word};
    return osct::debug_setting("fake_nodes").empty() &&
           ::process_vm_readv(static_cast<pid_t>(there.pid), &to, 1, &from, 1, 0) == sizeof word;
}

// Puts and sums that wait for a flush when the victim dies, where its memory is not mapped here.
void run_at_the_living() {
    const MPI_Win win = g_wins[kRun];
    const long one = 1;
    must_work("lock_all", [&] { return MPI_Win_lock_all(MPI_MODE_NOCHECK, win); });
    for (int i = 0; i < 100; ++i) {
        must_work("put", [&] { return MPI_Put(&one, 1, MPI_LONG, kVictim, i % 32, 1, MPI_LONG, win); });
        must_work("accumulate",
                  [&] { return MPI_Accumulate(&one, 1, MPI_LONG, kVictim, 32, 1, MPI_LONG, MPI_SUM, win); });
    }
}

void run_at_the_dead() {
    g_scenario = "run";
    const MPI_Win win = g_wins[kRun];
    const long one = 1;
    const auto flush = [&] { return MPI_Win_flush(kVictim, win); };
    // By messages the operations may have been performed before the death. Where handles are addresses, windows may
    // share a place in libosc's cache, and then have no batch for them.
    if (g_reaches_victim && !std::is_pointer_v<MPI_Win>)
        must_report("flush", flush);
    else
        must_return("flush", flush);
    must_report("put", [&] {
        const int error = MPI_Put(&one, 1, MPI_LONG, kVictim, 0, 1, MPI_LONG, win);
        return error != MPI_SUCCESS ? error : flush();
    });
    // The run goes on at the living.
    for (int i = 1; i <= 100; ++i) {
        const long value = i;
        must_work("put", [&] { return MPI_Put(&value, 1, MPI_LONG, 2, g_rank, 1, MPI_LONG, win); });
    }
    long seen = 0;
    must_work("flush of another", [&] { return MPI_Win_flush(2, win); });
    must_work("get", [&] { return MPI_Get(&seen, 1, MPI_LONG, 2, g_rank, 1, MPI_LONG, win); });
    must_work("flush of another", [&] { return MPI_Win_flush(2, win); });
    check_eq(seen, 100, "the last put");
    must_return("unlock_all", [&] { return MPI_Win_unlock_all(win); });
}

void memory_of_the_dead() {
    // Private memory of a process disappears with it.
    g_scenario = "memory";
    long value = 0;
    const MPI_Win win = g_wins[kMemory];
    must_return("lock", [&] { return MPI_Win_lock(MPI_LOCK_SHARED, kVictim, 0, win); });
    must_report("get", [&] {
        const int error = MPI_Get(&value, 1, MPI_LONG, kVictim, 0, 1, MPI_LONG, win);
        return error != MPI_SUCCESS ? error : MPI_Win_flush(kVictim, win);
    });
    must_return("unlock", [&] { return MPI_Win_unlock(kVictim, win); });
    check_eq(read(win, 2), kMemory * 100 + 2, "data of a survivor");
    g_scenario = "stripes";
    const std::vector<long> ones(kElements, 1);
    // The dead process held this lock too; a survivor that knows of the death does not acquire it.
    if (MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, g_wins[kStripes]) != MPI_SUCCESS) return;
    must_return("accumulate", [&] {
        return MPI_Accumulate(ones.data(), kElements, MPI_LONG, 0, 0, kElements, MPI_LONG, MPI_SUM, g_wins[kStripes]);
    });
    must_return("unlock", [] { return MPI_Win_unlock(0, g_wins[kStripes]); });
}

void collectives_without_the_dead() {
    g_scenario = "fence";
    must_report("fence", [] { return MPI_Win_fence(0, g_wins[kFence]); });
    // Processes that arrived in the failed fence must not count for the dead process in the next one.
    must_report("another fence", [] { return MPI_Win_fence(0, g_wins[kFence]); });
    g_scenario = "free";
    must_report("free", [] { return MPI_Win_free(&g_wins[kFree]); });
    // A survivor that has not noticed yet may still write there.
    for (int i = 0; i < 100; ++i) {
        long* other = nullptr;
        MPI_Alloc_mem(64 * sizeof(long), MPI_INFO_NULL, static_cast<void*>(&other));
        check(other + 64 <= g_bases[kFree] || other >= g_bases[kFree] + 64, "memory of the window, given out again", i,
              -1);
    }
}

void creation_without_the_dead() {
    g_scenario = "create";
    MPI_Win win = MPI_WIN_NULL;
    long* base = nullptr;
    must_report("allocate",
                [&] { return MPI_Win_allocate(64, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win); });
}

}  // namespace

int main(int argc, char** argv) {
    begin(argc, argv);
    if (g_size < 3) return 1;
    make_windows();
    g_reaches_victim = reaches(kVictim, g_bases[kRun]);
    if (g_rank == kVictim) victim();
    run_at_the_living();
    MPI_Barrier(MPI_COMM_WORLD);
    const auto part = [&](const char* name, void (*run)()) {
        bool wanted = argc == 1;
        for (int i = 1; i < argc; ++i)
            wanted = wanted || std::strcmp(argv[i], name) == 0;
        if (wanted) run();
    };
    part("locks", locks_held_by_the_dead);
    part("epochs", posts_and_completes_of_the_dead);
    part("test", tests_for_the_dead);
    part("notify", notifications_of_the_dead);
    part("memory", memory_of_the_dead);
    part("run", run_at_the_dead);
    part("collectives", collectives_without_the_dead);
    part("create", creation_without_the_dead);
    leave();
}
