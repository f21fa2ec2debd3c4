// Right and wrong programs for conflict detection. Two processes access the memory of rank 0: ranks 0 and 1, or, of
// three, ranks 1 and 2. Each case has a window of its own with the case's name, and call sites of its own. Rank 0
// prints one line for each:
//   case NAME [TAB first line of the report TAB second line]
// races.py runs the program with OSC_CHECK=1 and compares the reports. No case depends on the time of an event: in
// epochs under locks, barriers make operations overlap or order them.
//
// corpus [threads]
#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "epochs.h"

using namespace races;

namespace {

enum class Pair {
    // Two accesses that conflict unless something orders them.
    PutPut,
    PutGet,
    GetPut,
    AccOperations,
    AccTypes,
    AccElements,
    AccPut,
    FetchGet,
    SwapPut,
    RowsPut,
    OriginPutPut,  // both of the first process
    OriginPutGet,
    OriginAccTypes,
    // Two accesses that never conflict.
    GetGet,
    AccAcc,
    AccNoOp,
    SwapFetch,
    RowsBetweenRows,
    Neighbours,
    OriginAccOperations,
    Count,
};
constexpr const char* kPairs[] = {
    "put_put",   "put_get",   "get_put",    "acc_operations", "acc_types",      "acc_elements",     "acc_put",
    "fetch_get", "swap_put",  "rows_put",   "origin_put_put", "origin_put_get", "origin_acc_types", "get_get",
    "acc_acc",   "acc_no_op", "swap_fetch", "rows_rows",      "neighbours",     "origin_acc"};

constexpr bool is_of_one_origin(Pair pair) {
    return (pair >= Pair::OriginPutPut && pair <= Pair::OriginAccTypes) || pair == Pair::OriginAccOperations;
}

MPI_Datatype rows() {
    static MPI_Datatype type = MPI_DATATYPE_NULL;  // 4 longs, 16 bytes apart
    if (type == MPI_DATATYPE_NULL) {
        MPI_Type_vector(4, 1, 2, MPI_LONG, &type);
        MPI_Type_commit(&type);
    }
    return type;
}

template <Pair kPair>
void expect_conflict(const Case& at) {
    if constexpr (kPair == Pair::PutPut) at.expect("Put", "Put", 12, 16, false);
    if constexpr (kPair == Pair::PutGet) at.expect("Put", "Get", 8, 16, false);
    if constexpr (kPair == Pair::GetPut) at.expect("Get", "Put", 12, 16, false);
    if constexpr (kPair == Pair::AccOperations)
        at.expect("Accumulate", "Get_accumulate", 8, 16, false,
                  "; accumulates of different operations: MPI_SUM, MPI_MAX");
    if constexpr (kPair == Pair::AccTypes)
        at.expect("Accumulate", "Accumulate", 8, 16, false, "; accumulates of different types");
    if constexpr (kPair == Pair::AccElements)
        at.expect("Accumulate", "Accumulate", 12, 16, false, "; accumulates whose elements overlap in part");
    if constexpr (kPair == Pair::AccPut) at.expect("Accumulate", "Put", 8, 16, false);
    if constexpr (kPair == Pair::FetchGet) at.expect("Fetch_and_op", "Get", 8, 12, false);
    if constexpr (kPair == Pair::SwapPut) at.expect("Compare_and_swap", "Put", 8, 16, false);
    if constexpr (kPair == Pair::RowsPut) at.expect("Put", "Put", 32, 36, false);
    if constexpr (kPair == Pair::OriginPutPut) at.expect("Put", "Put", 12, 16, true);
    if constexpr (kPair == Pair::OriginPutGet) at.expect("Put", "Get", 8, 16, true);
    if constexpr (kPair == Pair::OriginAccTypes)
        at.expect("Accumulate", "Accumulate", 8, 16, true, "; accumulates of different types");
}

// The two accesses.
template <Pair kPair>
[[gnu::always_inline]] inline void access_first(Case& at) {
    MPI_Win win = at.win();
    if constexpr (kPair == Pair::PutPut || kPair == Pair::PutGet || kPair == Pair::Neighbours ||
                  kPair == Pair::OriginPutPut || kPair == Pair::OriginPutGet)
        MPI_Put(at.value(), 1, MPI_LONG, 0, 8, 1, MPI_LONG, win);
    else if constexpr (kPair == Pair::GetPut || kPair == Pair::GetGet)
        MPI_Get(at.value(), 1, MPI_LONG, 0, 8, 1, MPI_LONG, win);
    else if constexpr (kPair == Pair::FetchGet || kPair == Pair::SwapFetch)
        MPI_Fetch_and_op(at.value(), at.value(), MPI_LONG, 0, 8, MPI_SUM, win);
    else if constexpr (kPair == Pair::SwapPut)
        MPI_Compare_and_swap(at.value(), at.value(), at.value(), MPI_LONG, 0, 8, win);
    else if constexpr (kPair == Pair::RowsPut || kPair == Pair::RowsBetweenRows)
        MPI_Put(at.value(), 4, MPI_LONG, 0, 0, 1, rows(), win);
    else
        MPI_Accumulate(at.value(), 1, MPI_LONG, 0, 8, 1, MPI_LONG, MPI_SUM, win);
}
template <Pair kPair>
[[gnu::always_inline]] inline void access_second(Case& at) {
    MPI_Win win = at.win();
    if constexpr (kPair == Pair::PutPut || kPair == Pair::GetPut || kPair == Pair::OriginPutPut)
        MPI_Put(at.value(), 1, MPI_INT, 0, 12, 1, MPI_INT, win);
    else if constexpr (kPair == Pair::PutGet || kPair == Pair::GetGet || kPair == Pair::OriginPutGet)
        MPI_Get(at.value(), 1, MPI_LONG, 0, 8, 1, MPI_LONG, win);
    else if constexpr (kPair == Pair::FetchGet)
        MPI_Get(at.value(), 1, MPI_INT, 0, 8, 1, MPI_INT, win);
    else if constexpr (kPair == Pair::Neighbours)
        MPI_Put(at.value(), 1, MPI_LONG, 0, 16, 1, MPI_LONG, win);
    else if constexpr (kPair == Pair::AccPut || kPair == Pair::SwapPut)
        MPI_Put(at.value(), 1, MPI_LONG, 0, 8, 1, MPI_LONG, win);
    else if constexpr (kPair == Pair::RowsPut)
        MPI_Put(at.value(), 1, MPI_LONG, 0, 28, 1, MPI_LONG, win);
    else if constexpr (kPair == Pair::RowsBetweenRows)
        MPI_Put(at.value(), 4, MPI_LONG, 0, 8, 1, rows(), win);
    else if constexpr (kPair == Pair::AccOperations)
        MPI_Get_accumulate(at.value(), 1, MPI_LONG, at.value(), 1, MPI_LONG, 0, 8, 1, MPI_LONG, MPI_MAX, win);
    else if constexpr (kPair == Pair::AccTypes || kPair == Pair::OriginAccTypes)
        MPI_Accumulate(at.value(), 1, MPI_DOUBLE, 0, 8, 1, MPI_DOUBLE, MPI_SUM, win);
    else if constexpr (kPair == Pair::AccElements)
        MPI_Accumulate(at.value(), 1, MPI_LONG, 0, 12, 1, MPI_LONG, MPI_SUM, win);
    else if constexpr (kPair == Pair::AccNoOp)
        MPI_Get_accumulate(nullptr, 0, MPI_LONG, at.value(), 1, MPI_LONG, 0, 8, 1, MPI_LONG, MPI_NO_OP, win);
    else if constexpr (kPair == Pair::SwapFetch)
        MPI_Compare_and_swap(at.value(), at.value(), at.value(), MPI_LONG, 0, 8, win);
    else
        MPI_Accumulate(at.value(), 1, MPI_LONG, 0, 8, 1, MPI_LONG,
                       kPair == Pair::OriginAccOperations ? MPI_MAX : MPI_SUM, win);
}

// Each instance has call sites of its own.
template <World kWorld, Pair kPair, bool kOrders>
[[gnu::noinline]] void run_pair() {
    Case at(std::string(kWorlds[static_cast<int>(kWorld)]) + "." + kPairs[static_cast<int>(kPair)] +
            (kOrders ? ".ordered" : ""));
    if (kOrders || kPair >= Pair::GetGet)
        at.expect_nothing();
    else
        expect_conflict<kPair>(at);
    begin(kWorld, at.win());
    if (g_rank == g_first) access_first<kPair>(at);
    between(kWorld, at.win(), kOrders);
    if (g_rank == (is_of_one_origin(kPair) ? g_first : g_second)) access_second<kPair>(at);
    between(kWorld, at.win(), false);
    end(kWorld, at.win());
}

template <World kWorld, int kPair = 0>
void run_pairs() {
    if constexpr (kPair < static_cast<int>(Pair::Count)) {
        run_pair<kWorld, static_cast<Pair>(kPair), false>();
        if constexpr (static_cast<Pair>(kPair) < Pair::GetGet) run_pair<kWorld, static_cast<Pair>(kPair), true>();
        run_pairs<kWorld, kPair + 1>();
    }
}

// A put that a flush completes, and a message that tells the reader.
void message() {
    Case at("message");
    at.expect_nothing();
    MPI_Win_lock_all(0, at.win());
    int token = 1;
    if (g_rank == g_first) {
        MPI_Put(at.value(), 1, MPI_LONG, 0, 8, 1, MPI_LONG, at.win());
        MPI_Win_flush(0, at.win());
        MPI_Send(&token, 1, MPI_INT, g_second, 0, MPI_COMM_WORLD);
    } else if (g_rank == g_second) {
        MPI_Recv(&token, 1, MPI_INT, g_first, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Get(at.value(), 1, MPI_LONG, 0, 8, 1, MPI_LONG, at.win());
    }
    MPI_Win_unlock_all(at.win());
}

// The same, but only the origin's side is complete when the message leaves.
void message_too_early() {
    Case at("message_too_early");
    at.expect("Put", "Get", 8, 16, false);
    MPI_Win_lock_all(0, at.win());
    int token = 1;
    if (g_rank == g_first) {
        MPI_Put(at.value(), 1, MPI_LONG, 0, 8, 1, MPI_LONG, at.win());
        MPI_Win_flush_local(0, at.win());
        MPI_Send(&token, 1, MPI_INT, g_second, 0, MPI_COMM_WORLD);
    } else if (g_rank == g_second) {
        MPI_Recv(&token, 1, MPI_INT, g_first, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Get(at.value(), 1, MPI_LONG, 0, 8, 1, MPI_LONG, at.win());
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_unlock_all(at.win());
}

// The request of a put completes it at the origin only.
void request_of_put(bool flushes) {
    Case at(flushes ? "request_and_flush" : "request_of_put");
    if (flushes)
        at.expect_nothing();
    else
        at.expect("Rput", "Get", 8, 16, false);
    MPI_Win_lock_all(0, at.win());
    if (g_rank == g_first) {
        MPI_Request request;
        MPI_Rput(at.value(), 1, MPI_LONG, 0, 8, 1, MPI_LONG, at.win(), &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (flushes) MPI_Win_flush(0, at.win());
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (g_rank == g_second) MPI_Get(at.value(), 1, MPI_LONG, 0, 8, 1, MPI_LONG, at.win());
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_unlock_all(at.win());
}

// A get whose request is complete has read the memory.
void request_of_get() {
    Case at("request_of_get");
    at.expect_nothing();
    MPI_Win_lock_all(0, at.win());
    if (g_rank == g_first) {
        MPI_Request request;
        MPI_Rget(at.value(), 1, MPI_LONG, 0, 8, 1, MPI_LONG, at.win(), &request);
        MPI_Waitall(1, &request, MPI_STATUSES_IGNORE);
        MPI_Put(at.value(), 1, MPI_LONG, 0, 8, 1, MPI_LONG, at.win());
    }
    MPI_Win_unlock_all(at.win());
}

// The order of one origin's accumulates does not keep the promise of one operation; a flush between them does.
void promised_operation() {
    Case at("promised_operation", 1, "same_op_no_op");
    at.expect("Accumulate", "Accumulate", 8, 16, true, "; accumulates of different operations: MPI_SUM, MPI_MAX");
    MPI_Win_lock_all(0, at.win());
    if (g_rank == g_first) {
        MPI_Accumulate(at.value(), 1, MPI_LONG, 0, 8, 1, MPI_LONG, MPI_SUM, at.win());
        MPI_Accumulate(at.value(), 1, MPI_LONG, 0, 16, 1, MPI_LONG, MPI_MIN, at.win());
        MPI_Accumulate(at.value(), 1, MPI_LONG, 0, 8, 1, MPI_LONG, MPI_MAX, at.win());
        MPI_Win_flush(0, at.win());
        MPI_Accumulate(at.value(), 1, MPI_LONG, 0, 8, 1, MPI_LONG, MPI_PROD, at.win());
    }
    MPI_Win_unlock_all(at.win());
}

// Exclusive locks order, and so does an exclusive lock beside shared ones.
void exclusive_locks() {
    Case at("exclusive_locks");
    at.expect_nothing();
    for (int round = 0; round < 3; ++round) {
        MPI_Win_lock(g_rank == 0 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, 0, 0, at.win());
        if (g_rank == 0)
            MPI_Get(at.value(), 1, MPI_LONG, 0, 8, 1, MPI_LONG, at.win());
        else
            MPI_Put(at.value(), 1, MPI_LONG, 0, 8, 1, MPI_LONG, at.win());
        MPI_Win_unlock(0, at.win());
    }
}

// The reader polls a flag with atomic operations.
void polling() {
    Case at("polling");
    at.expect_nothing();
    MPI_Win_lock_all(0, at.win());
    if (g_rank == g_first) {
        MPI_Put(at.value(), 1, MPI_LONG, 0, 8, 1, MPI_LONG, at.win());
        MPI_Win_flush(0, at.win());
        long* const one = at.value();
        *one = 1;
        MPI_Accumulate(one, 1, MPI_LONG, 0, 16, 1, MPI_LONG, MPI_REPLACE, at.win());
    } else if (g_rank == g_second) {
        volatile long* const flag = at.value();
        while (*flag == 0) {
            MPI_Fetch_and_op(nullptr, const_cast<long*>(flag), MPI_LONG, 0, 16, MPI_NO_OP, at.win());
            MPI_Win_flush(0, at.win());
        }
        MPI_Get(at.value(), 1, MPI_LONG, 0, 8, 1, MPI_LONG, at.win());
    }
    MPI_Win_unlock_all(at.win());
}

// The second process starts its epoch after the first one has completed its own, but both belong to one exposure epoch.
void one_exposure() {
    Case at("one_exposure");
    at.expect("Put", "Put", 8, 16, false);
    post(at.win());
    for (const int origin : {g_first, g_second}) {
        if (g_rank == origin) {
            start(at.win());
            MPI_Put(at.value(), 1, MPI_LONG, 0, 8, 1, MPI_LONG, at.win());
            MPI_Win_complete(at.win());
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (g_rank == 0) MPI_Win_wait(at.win());
}

// Displacement units that differ by rank.
void units() {
    Case at("units", g_rank == 0 ? 8 : 1);
    at.expect_nothing();
    MPI_Win_fence(0, at.win());
    MPI_Put(at.value(), 1, MPI_LONG, 0, g_rank, 1, MPI_LONG, at.win());
    MPI_Win_fence(0, at.win());
}

// More windows than the checker has communicators for: those of the same processes share one.
void beside_many_windows() {
    std::vector<MPI_Win> others(120);
    for (MPI_Win& win : others) {
        void* memory = nullptr;
        MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    }
    {
        Case at("beside_many_windows");
        at.expect("Put", "Put", 8, 16, false);
        MPI_Win_fence(0, at.win());
        if (is_origin()) MPI_Put(at.value(), 1, MPI_LONG, 0, 8, 1, MPI_LONG, at.win());
        MPI_Win_fence(0, at.win());
    }
    for (MPI_Win& win : others)
        MPI_Win_free(&win);
}

// Two threads of one process, at the same bytes or at their own.
void threads(bool apart) {
    Case at(apart ? "threads_apart" : "threads");
    if (apart)
        at.expect_nothing();
    else
        at.expect("Put", "Put", 8, 16, true);
    MPI_Win_lock_all(0, at.win());
    if (g_rank == g_first) {
        long* const values[] = {at.value(), at.value()};
        const auto put = [&](int thread) {
            MPI_Put(values[thread], 1, MPI_LONG, 0, apart ? 8 * thread : 8, 1, MPI_LONG, at.win());
        };
        std::jthread other(put, 1);
        put(0);
    }
    MPI_Win_unlock_all(at.win());
}

}  // namespace

int main(int argc, char** argv) {
    const bool multiple = argc > 1 && std::strcmp(argv[1], "threads") == 0;
    int provided = 0;
    MPI_Init_thread(&argc, &argv, multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size < 2) {
        std::fprintf(stderr, "corpus needs two processes\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (size > 2) {
        g_first = 1;
        g_second = 2;
    }
    run_pairs<World::Fence>();
    run_pairs<World::Pscw>();
    run_pairs<World::LockAll>();
    run_pairs<World::Locks>();
    message();
    message_too_early();
    request_of_put(false);
    request_of_put(true);
    request_of_get();
    promised_operation();
    exclusive_locks();
    polling();
    one_exposure();
    units();
    notified_cases();
    if (multiple) {
        threads(false);
        threads(true);
    } else {
        beside_many_windows();  // the windows of a program with threads share none
    }
    MPI_Finalize();
}
