// The synchronisation strategies (OSC_FENCE, OSC_PSCW, OSC_LOCK, and the info keys): deferred calls return before the
// post, lock or fence that they need; immediate ones do not. Deferred operations keep their order while the program
// frees datatypes, flushes, or makes requests.
#include <string>
#include <vector>

#include "harness.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_fence", "MPI_Win_start", "MPI_Win_post", "MPI_Win_lock", "MPI_Win_lock_all",
             "MPI_Put", "MPI_Get", "MPI_Accumulate", "MPI_Rput")

namespace {

constexpr int kTag = 7;
constexpr int kMany = 5000;  // more than a queue ever contains

const std::vector<std::string> kModes = {"auto", "immediate", "deferred"};

/// A window with the given strategies.
struct Chosen {
    MPI_Win win = MPI_WIN_NULL;
    long* base = nullptr;
    Chosen(const std::string& fence, const std::string& pscw, const std::string& lock, int longs = 16) {
        const Info info{{"osc_fence", fence.c_str()}, {"osc_pscw", pscw.c_str()}, {"osc_lock", lock.c_str()}};
        CHECK_OK(MPI_Win_allocate(longs * static_cast<MPI_Aint>(sizeof(long)), sizeof(long), info, MPI_COMM_WORLD,
                                  &base, &win));
        MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
        for (int i = 0; i < longs; ++i)
            base[i] = 0;
        MPI_Barrier(MPI_COMM_WORLD);
    }
    explicit Chosen(const std::string& all, int longs = 16) : Chosen(all, all, all, longs) {}
    ~Chosen() { CHECK_OK(MPI_Win_free(&win)); }
    Chosen(const Chosen&) = delete;
    Chosen& operator=(const Chosen&) = delete;
};

void tell(int peer) {
    MPI_Send(nullptr, 0, MPI_BYTE, peer, kTag, MPI_COMM_WORLD);
}

void hear(int peer) {
    MPI_Recv(nullptr, 0, MPI_BYTE, peer, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

bool has_heard(int peer) {
    int found = 0;
    for (int i = 0; i < 1000 && !found; ++i)
        MPI_Iprobe(peer, kTag, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    return found != 0;
}

/// Time in which the other process would go on if it did not wait.
void linger() {
    const double end = MPI_Wtime() + 0.02;
    int found = 0;
    while (MPI_Wtime() < end)
        MPI_Iprobe(MPI_ANY_SOURCE, kTag + 1, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
}

/// The last process is the target of the first.
int target() {
    return size() - 1;
}

void put(const long& value, int to, MPI_Win win) {
    CHECK_OK(MPI_Put(&value, 1, MPI_LONG, to, 0, 1, MPI_LONG, win));
}

}  // namespace

CASE(deferred_start_and_put_return_before_the_post) {
    Chosen chosen("auto", "deferred", "auto");
    const long value = 42;
    for (int turn = 0; turn < 5; ++turn) {
        if (rank() == 0) {
            CHECK_OK(MPI_Win_start(Group(target()), 0, chosen.win));
            CHECK_OK(MPI_Put(&value, 1, MPI_LONG, target(), turn, 1, MPI_LONG, chosen.win));
            tell(target());
            CHECK_OK(MPI_Win_complete(chosen.win));
        } else if (rank() == target()) {
            hear(0);
            chosen.base[turn] = -1;  // still this process's own
            CHECK_OK(MPI_Win_post(Group(0), 0, chosen.win));
            CHECK_OK(MPI_Win_wait(chosen.win));
            CHECK_EQ(chosen.base[turn], value);
        }
    }
}

CASE(immediate_start_returns_after_the_post) {
    Chosen chosen("auto", "immediate", "auto");
    if (rank() == 0) {
        CHECK_OK(MPI_Win_start(Group(target()), 0, chosen.win));
        CHECK(has_heard(target()));
        hear(target());
        CHECK_OK(MPI_Win_complete(chosen.win));
    } else if (rank() == target()) {
        linger();
        tell(0);
        CHECK_OK(MPI_Win_post(Group(0), 0, chosen.win));
        CHECK_OK(MPI_Win_wait(chosen.win));
    }
}

// A fence with MPI_MODE_NOPRECEDE does not wait, unless it is immediate between nodes. A later put does not change the
// memory of a target that has not made that fence yet.
CASE(opening_fence_returns_before_the_targets_fence) {
    for (const std::string& mode : kModes) {
        if (mode == "immediate" && !osct::on_one_node()) continue;
        Chosen chosen(mode);
        for (int to = 1; to < size(); ++to) {
            const long value = 42;
            if (rank() == to) {
                hear(0);
                linger();
                chosen.base[to] = -1;  // still this process's own
            }
            CHECK_OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, chosen.win));
            if (rank() == 0) {
                tell(to);
                CHECK_OK(MPI_Put(&value, 1, MPI_LONG, to, to, 1, MPI_LONG, chosen.win));
            }
            CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, chosen.win));
            if (rank() == to) CHECK_EQ(chosen.base[to], value);
        }
    }
}

CASE(deferred_fence_and_put_return_before_the_targets_fence) {
    Chosen chosen("deferred", "auto", "auto");
    const long value = 42;
    for (int turn = 0; turn < 5; ++turn) {
        if (rank() == target()) {
            hear(0);
            chosen.base[turn] = -1;
        }
        if (rank() == 0 || rank() == target()) CHECK_OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, chosen.win));
        if (rank() == 0) {
            CHECK_OK(MPI_Put(&value, 1, MPI_LONG, target(), turn, 1, MPI_LONG, chosen.win));
            tell(target());
        }
        if (rank() != 0 && rank() != target()) CHECK_OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, chosen.win));
        CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, chosen.win));
        if (rank() == target()) CHECK_EQ(chosen.base[turn], value);
    }
}

CASE(deferred_lock_and_put_return_while_the_lock_is_taken) {
    Chosen chosen("auto", "auto", "deferred");
    const int to = size() > 2 ? 1 : target();
    const long values[] = {1, 2};
    for (const int type : {MPI_LOCK_EXCLUSIVE, MPI_LOCK_SHARED}) {
        if (rank() == target()) {
            CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, chosen.win));
            put(values[0], to, chosen.win);
            CHECK_OK(MPI_Win_flush(to, chosen.win));  // acquires the lock
            tell(0);
            hear(0);
            long seen = 0;
            CHECK_OK(MPI_Get(&seen, 1, MPI_LONG, to, 0, 1, MPI_LONG, chosen.win));
            CHECK_OK(MPI_Win_unlock(to, chosen.win));
            CHECK_EQ(seen, 1);
        } else if (rank() == 0) {
            hear(target());
            CHECK_OK(MPI_Win_lock(type, to, 0, chosen.win));
            put(values[1], to, chosen.win);
            tell(target());
            CHECK_OK(MPI_Win_unlock(to, chosen.win));
        }
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, rank(), 0, chosen.win));
        if (rank() == to) CHECK_EQ(chosen.base[0], 2);
        CHECK_OK(MPI_Win_unlock(rank(), chosen.win));
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

CASE(immediate_lock_returns_with_the_lock) {
    Chosen chosen("auto", "auto", "immediate");
    const int to = target();
    if (rank() == to) {
        CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, chosen.win));
        tell(0);
        linger();
        tell(0);
        CHECK_OK(MPI_Win_unlock(to, chosen.win));
    } else if (rank() == 0) {
        hear(to);
        CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, chosen.win));
        CHECK(has_heard(to));
        hear(to);
        CHECK_OK(MPI_Win_unlock(to, chosen.win));
    }
}

// Its own memory a process may load and store as soon as MPI_Win_lock has returned, whatever is deferred.
CASE(a_lock_on_oneself_is_held) {
    Chosen chosen("deferred");
    const long one = 1;
    for (int turn = 0; turn < 200; ++turn) {
        const int to = turn % size();
        CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, chosen.win));
        if (to == rank()) {
            const long seen = chosen.base[0];
            chosen.base[0] = seen + 1;
        } else {
            CHECK_OK(MPI_Accumulate(&one, 1, MPI_LONG, to, 0, 1, MPI_LONG, MPI_SUM, chosen.win));
        }
        CHECK_OK(MPI_Win_unlock(to, chosen.win));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    long mine = 0;
    CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, rank(), 0, chosen.win));
    mine = chosen.base[0];
    CHECK_OK(MPI_Win_unlock(rank(), chosen.win));
    long all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    CHECK_EQ(all, 200L * size());
}

// More operations than a queue contains keep their order; their datatypes are freed at once.
CASE(deferred_operations_keep_their_order) {
    for (const std::string& mode : kModes) {
        Chosen chosen(mode, kMany + 1);
        std::vector<long> values(kMany);
        for (int i = 0; i < kMany; ++i)
            values[static_cast<std::size_t>(i)] = rank() * 100000L + i;
        const auto operations = [&] {
            for (int i = 0; i < kMany; ++i) {
                MPI_Datatype type;
                MPI_Type_contiguous(1, MPI_LONG, &type);
                MPI_Type_commit(&type);
                const long* value = &values[static_cast<std::size_t>(i)];
                MPI_Put(value, 1, type, right(), 1 + i, 1, type, chosen.win);
                MPI_Accumulate(value, 1, MPI_LONG, right(), 0, 1, MPI_LONG, MPI_REPLACE, chosen.win);
                MPI_Type_free(&type);
            }
        };
        const auto check = [&] {
            CHECK_EQ(chosen.base[0], left() * 100000L + kMany - 1);
            CHECK_ALL(chosen.base + 1, std::size_t{kMany},
                      [&](std::size_t i) { return left() * 100000L + static_cast<long>(i); });
            for (int i = 0; i <= kMany; ++i)
                chosen.base[i] = -1;
        };
        MPI_Win_fence(MPI_MODE_NOPRECEDE, chosen.win);
        operations();
        CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, chosen.win));
        check();
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_OK(MPI_Win_post(Group(left()), 0, chosen.win));
        CHECK_OK(MPI_Win_start(Group(right()), 0, chosen.win));
        operations();
        CHECK_OK(MPI_Win_complete(chosen.win));
        CHECK_OK(MPI_Win_wait(chosen.win));
        check();
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, chosen.win));
        operations();
        CHECK_OK(MPI_Win_unlock(right(), chosen.win));
        MPI_Barrier(MPI_COMM_WORLD);
        check();
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_OK(MPI_Win_lock_all(0, chosen.win));
        operations();
        CHECK_OK(MPI_Win_unlock_all(chosen.win));
        MPI_Barrier(MPI_COMM_WORLD);
        check();
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

// After a wait for a request, the operations queued before it are complete too.
CASE(requests_send_earlier_operations_too) {
    Chosen chosen("deferred");
    MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, chosen.win);
    const long first = 10 + rank(), second = 20 + rank();
    CHECK_OK(MPI_Put(&first, 1, MPI_LONG, right(), 0, 1, MPI_LONG, chosen.win));
    MPI_Request request;
    CHECK_OK(MPI_Rput(&second, 1, MPI_LONG, right(), 1, 1, MPI_LONG, chosen.win, &request));
    CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    long seen[2] = {};
    CHECK_OK(MPI_Get(seen, 2, MPI_LONG, right(), 0, 2, MPI_LONG, chosen.win));
    CHECK_OK(MPI_Win_flush_local(right(), chosen.win));
    CHECK_EQ(seen[0], first);
    CHECK_EQ(seen[1], second);
    CHECK_OK(MPI_Win_unlock(right(), chosen.win));
}

// The call itself reports errors that do not depend on the time of execution.
CASE(errors_are_returned_by_the_call) {
    Chosen chosen("deferred");
    const long value = 1;
    const auto beyond = [&] {
        int error = MPI_Put(&value, 1, MPI_LONG, right(), 16, 1, MPI_LONG, chosen.win);
        MPI_Error_class(error, &error);
        CHECK_EQ(error, MPI_ERR_RMA_RANGE);
    };
    MPI_Win_fence(0, chosen.win);
    beyond();
    MPI_Win_fence(MPI_MODE_NOSUCCEED, chosen.win);
    MPI_Win_lock(MPI_LOCK_SHARED, right(), 0, chosen.win);
    beyond();
    CHECK_OK(MPI_Win_unlock(right(), chosen.win));
    MPI_Win_lock_all(0, chosen.win);
    beyond();
    CHECK_OK(MPI_Win_unlock_all(chosen.win));
}
