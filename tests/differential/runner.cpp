// The synchronisation of a round, by its kind.
#include "runner.h"

#include <sched.h>
#include <time.h>

#include <algorithm>

#include "report.h"

namespace diff {
namespace {

bool writes(const Operation& op) {
    return !op.fills_here();
}

// The ranks r for which any operation of the phase has chosen(op, r).
template <class F>
std::vector<int> ranks_where(const Phase& phase, int size, F&& chosen) {
    std::vector<int> ranks;
    for (int rank = 0; rank < size; ++rank)
        if (std::any_of(phase.operations.begin(), phase.operations.end(),
                        [&](const Operation& op) { return chosen(op, rank); }))
            ranks.push_back(rank);
    return ranks;
}

MPI_Group group_of(const std::vector<int>& ranks) {
    MPI_Group world = MPI_GROUP_NULL;
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, static_cast<int>(ranks.size()), ranks.data(), &group);
    MPI_Group_free(&world);
    return group;
}

}  // namespace

Runner::Runner(Place& place, Model& model, Random& jitter)
    : place_(place), model_(model), jitter_(jitter), window_(place.window()) {
    MPI_Comm_rank(MPI_COMM_WORLD, &me_);
}

// Ranks must not go in step, or a missing wait would go unseen.
void Runner::linger() {
    if (!jitter_.once_in(6)) return;
    if (jitter_.once_in(3)) {
        const timespec pause{0, static_cast<long>(jitter_.below(800000))};
        ::nanosleep(&pause, nullptr);
    } else {
        ::sched_yield();
    }
}

void Runner::run(Round& round) {
    refresh(round);
    linger();
    if (round.sync == Sync::Fence || round.sync == Sync::FenceAsserts) {
        fence_round(round);
    } else if (round.sync == Sync::Pscw) {
        pscw_round(round);
    } else if (locks_all(round.sync)) {
        lock_all_round(round);
    } else {
        lock_round(round);
    }
    if (!place_.guards_intact()) fail("bytes around the window were written");
    for (Phase& phase : round.phases)
        resolve(phase);
    round.release();
    live_.clear();
}

// The owner's stores. Passive epochs of others can follow at once, so a lock and a barrier order the stores before
// them.
void Runner::refresh(const Round& round) {
    const bool alone = passive(round.sync);
    if (alone) check_call(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, me_, 0, window_), "MPI_Win_lock");
    for (const Refresh& refresh : round.refresh)
        if (refresh.rank == me_) place_.store(refresh.offset, refresh.bytes.data(), refresh.bytes.size());
    if (!alone) return;
    check_call(MPI_Win_unlock(me_, window_), "MPI_Win_unlock");
    MPI_Barrier(MPI_COMM_WORLD);
}

void Runner::fence_round(Round& round) {
    const bool asserts = round.sync == Sync::FenceAsserts;
    for (std::size_t i = 0; i < round.phases.size(); ++i) {
        Phase& phase = round.phases[i];
        const bool last = i + 1 == round.phases.size();
        const bool untouched = std::none_of(phase.operations.begin(), phase.operations.end(),
                                            [&](const Operation& op) { return op.target == me_ && writes(op); });
        if (i == 0) {
            const int assert = (asserts ? MPI_MODE_NOPRECEDE : 0) | (asserts && untouched ? MPI_MODE_NOPUT : 0);
            check_call(MPI_Win_fence(assert, window_), "MPI_Win_fence");
        }
        linger();
        issue_all(phase, round.sync, -1);
        linger();
        const int assert = asserts ? MPI_MODE_NOSTORE | (last ? MPI_MODE_NOSUCCEED : 0) : 0;
        check_call(MPI_Win_fence(assert, window_), "MPI_Win_fence");
        settle_all();
        // Between two fences only gets by others are harmless to a look at the memory.
        if (last) check_memory(phase);
    }
}

void Runner::pscw_round(Round& round) {
    Phase& phase = round.phases.front();
    const int size = place_.ranks();
    const std::vector<int> origins =
        ranks_where(phase, size, [&](const Operation& op, int rank) { return op.target == me_ && op.origin == rank; });
    std::vector<int> targets =
        ranks_where(phase, size, [&](const Operation& op, int rank) { return op.origin == me_ && op.target == rank; });
    jitter_.shuffle(targets);
    const bool untouched = std::none_of(phase.operations.begin(), phase.operations.end(),
                                        [&](const Operation& op) { return op.target == me_ && writes(op); });
    MPI_Group from = group_of(origins);
    MPI_Group to = group_of(targets);
    check_call(MPI_Win_post(from, untouched ? MPI_MODE_NOPUT : 0, window_), "MPI_Win_post");
    linger();
    check_call(MPI_Win_start(to, 0, window_), "MPI_Win_start");
    linger();
    issue_all(phase, round.sync, -1);
    linger();
    check_call(MPI_Win_complete(window_), "MPI_Win_complete");
    settle_all();
    if (jitter_.once_in(2)) {
        for (int done = 0; done == 0;) {
            check_call(MPI_Win_test(window_, &done), "MPI_Win_test");
            if (done == 0) ::sched_yield();
        }
    } else {
        check_call(MPI_Win_wait(window_), "MPI_Win_wait");
    }
    MPI_Group_free(&from);
    MPI_Group_free(&to);
    check_memory(phase);
}

void Runner::lock_round(Round& round) {
    Phase& phase = round.phases.front();
    const bool exclusive = round.sync == Sync::LockExclusive;
    std::vector<int> targets = ranks_where(
        phase, place_.ranks(), [&](const Operation& op, int rank) { return op.origin == me_ && op.target == rank; });
    jitter_.shuffle(targets);
    const int type = exclusive ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED;
    // Two exclusive locks at a time could wait for each other.
    const bool together = !exclusive && jitter_.once_in(3);
    for (const int target : targets)
        if (together) check_call(MPI_Win_lock(type, target, 0, window_), "MPI_Win_lock");
    for (const int target : targets) {
        if (!together) check_call(MPI_Win_lock(type, target, 0, window_), "MPI_Win_lock");
        linger();
        issue_all(phase, round.sync, target);
        if (!together) check_call(MPI_Win_unlock(target, window_), "MPI_Win_unlock");
    }
    for (const int target : targets)
        if (together) check_call(MPI_Win_unlock(target, window_), "MPI_Win_unlock");
    settle_all();
    MPI_Barrier(MPI_COMM_WORLD);
    check_call(MPI_Win_lock(MPI_LOCK_SHARED, me_, 0, window_), "MPI_Win_lock");
    check_memory(phase);
    check_call(MPI_Win_unlock(me_, window_), "MPI_Win_unlock");
}

void Runner::lock_all_round(Round& round) {
    check_call(MPI_Win_lock_all(0, window_), "MPI_Win_lock_all");
    for (Phase& phase : round.phases) {
        issue_all(phase, round.sync, -1);
        linger();
        if (round.sync == Sync::Flush) {
            for (int target = 0; target < place_.ranks(); ++target)
                check_call(MPI_Win_flush(target, window_), "MPI_Win_flush");
        } else {
            check_call(MPI_Win_flush_all(window_), "MPI_Win_flush_all");
        }
        settle_all();
        MPI_Barrier(MPI_COMM_WORLD);
        check_call(MPI_Win_sync(window_), "MPI_Win_sync");
        check_memory(phase);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    check_call(MPI_Win_unlock_all(window_), "MPI_Win_unlock_all");
}

void Runner::flush(Sync sync, int target, bool remote) {
    const bool all = sync == Sync::FlushAll || jitter_.once_in(4);
    if (sync == Sync::FlushLocal || !remote) {
        check_call(all ? MPI_Win_flush_local_all(window_) : MPI_Win_flush_local(target, window_),
                   "MPI_Win_flush_local");
        if (!remote) return;
    }
    check_call(all ? MPI_Win_flush_all(window_) : MPI_Win_flush(target, window_), "MPI_Win_flush");
}

void Runner::issue_all(Phase& phase, Sync sync, int only_target) {
    for (Operation& op : phase.operations) {
        if (op.origin != me_ || (only_target >= 0 && op.target != only_target)) continue;
        linger();
        live_.push_back(std::make_unique<Live>(op, jitter_, place_, context().host_safe));
        Live& live = *live_.back();
        live.issue();
        if (live.pending() && jitter_.once_in(2)) {
            live.wait();
            // A complete request has delivered, whatever the epoch does; MPICH 4.0.2 itself may complete gets too
            // early.
            if (!context().host_safe) live.check();
        }
        if (op.flush_after) {
            flush(sync, op.target, true);
            live.check();
        } else if (passive(sync) && jitter_.once_in(5)) {
            live.wait();
            flush(sync, op.target, false);
            live.check();
            live.scramble();
        }
    }
    for (const std::unique_ptr<Live>& live : live_)
        live->wait();
}

void Runner::settle_all() {
    for (const std::unique_ptr<Live>& live : live_)
        live->check();
}

void Runner::check_memory(const Phase& phase) {
    std::vector<unsigned char> now;
    place_.load(now);
    const Bytes& want = phase.after;
    for (std::size_t byte = 0; byte < now.size(); ++byte) {
        if (want.known[byte] == 0 || now[byte] == want.value[byte]) continue;
        std::string by = "nobody in this phase";
        for (const Operation& op : phase.operations)
            if (op.target == me_ && writes(op))
                for (const std::ptrdiff_t at : op.there.at)
                    if (static_cast<std::size_t>(op.start + at) <= byte &&
                        byte < static_cast<std::size_t>(op.start + at) + op.basic->width)
                        by = op.describe();
        fail("byte %zu of the window is 0x%02x, not 0x%02x; written last by %s", byte, now[byte], want.value[byte],
             by.c_str());
    }
}

}  // namespace diff
