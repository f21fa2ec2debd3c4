// Programs compiled for ThreadSanitizer whose processes load and store their window memory in the order that their
// calls give, for OSC_CHECK=2. Rank 0 is the origin. Each call that orders has a case: without that order, what the
// checker knows of it, it would report a race.
#include <mutex>
#include <thread>
#include <vector>

#include "cases.h"

namespace corpus {
namespace {

constexpr int kOrigin = 0;
constexpr int kTarget = 1;

volatile int g_seen = 0;

// An update of the target's first element, complete when it returns.
void put(MPI_Win window, int disp = 0) {
    int value = 1;
    MPI_Win_lock(MPI_LOCK_SHARED, kTarget, 0, window);
    MPI_Put(&value, 1, MPI_INT, kTarget, disp, 1, MPI_INT, window);
    MPI_Win_unlock(kTarget, window);
}

// Both processes touch one element: the target, then by a put the origin, then the target again. Whatever pass(from)
// does must order them.
template <class Pass>
void by_turns(MPI_Win window, int* base, Pass&& pass) {
    for (int round = 0; round < 3; ++round) {
        only(kTarget, [&] { base[0] += 1; });
        pass(kTarget);
        only(kOrigin, [&] { put(window); });
        pass(kOrigin);
    }
    only(kTarget, [&] { base[0] += 1; });
    MPI_Barrier(MPI_COMM_WORLD);
}
template <class Pass>
void by_turns(Pass&& pass) {
    IntWindow window;
    by_turns(window, window.base(), pass);
}

void fences() {
    IntWindow window;
    int value = 1;
    for (int round = 0; round < 3; ++round) {
        MPI_Win_fence(0, window);
        only(kOrigin, [&] { MPI_Put(&value, 1, MPI_INT, kTarget, 0, 1, MPI_INT, window); });
        only(kTarget, [&] { window.base()[1] = round; });  // beside it
        MPI_Win_fence(round == 1 ? MPI_MODE_NOSUCCEED : 0, window);
        only(kTarget, [&] { window.base()[0] += 1; });
    }
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
}

void posts() {
    IntWindow window;
    int value = 1;
    const GroupOf peer(1 - rank());
    for (int round = 0; round < 4; ++round) {
        only(kTarget, [&] {
            window.base()[0] += 1;
            MPI_Win_post(peer, 0, window);
            if (round % 2 == 0) {
                MPI_Win_wait(window);
            } else {
                int ended = 0;
                while (ended == 0)
                    MPI_Win_test(window, &ended);
            }
            window.base()[0] += 1;
        });
        only(kOrigin, [&] {
            MPI_Win_start(peer, 0, window);
            MPI_Put(&value, 1, MPI_INT, kTarget, 0, 1, MPI_INT, window);
            MPI_Win_complete(window);
        });
    }
}

// The target locks its own memory.
void exclusive_locks() {
    IntWindow window;
    int value = 1;
    for (int round = 0; round < 20; ++round) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, kTarget, 0, window);
        only(kOrigin, [&] { MPI_Put(&value, 1, MPI_INT, kTarget, 0, 1, MPI_INT, window); });
        only(kTarget, [&] { window.base()[0] += 1; });
        MPI_Win_unlock(kTarget, window);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

// The target's stores under an exclusive lock come before what others do in a lock_all.
void exclusive_lock_and_lock_all() {
    IntWindow window;
    int value = 1;
    for (int round = 0; round < 20; ++round) {
        only(kOrigin, [&] {
            MPI_Win_lock_all(0, window);
            MPI_Put(&value, 1, MPI_INT, kTarget, 0, 1, MPI_INT, window);
            MPI_Win_unlock_all(window);
        });
        only(kTarget, [&] {
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, kTarget, 0, window);
            window.base()[0] += 1;
            MPI_Win_unlock(kTarget, window);
        });
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

void messages() {
    int token = 0;
    by_turns([&](int from) {
        if (rank() == from)
            MPI_Send(&token, 1, MPI_INT, 1 - from, 0, MPI_COMM_WORLD);
        else
            MPI_Recv(&token, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    });
}

void synchronous_sends() {
    int token = 0;
    by_turns([&](int from) {
        if (rank() == from)
            MPI_Recv(&token, 1, MPI_INT, 1 - from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Ssend(&token, 1, MPI_INT, from, 0, MPI_COMM_WORLD);
    });
}

void requests() {
    int token = 0;
    by_turns([&](int from) {
        MPI_Request request = MPI_REQUEST_NULL;
        if (rank() == from) {
            MPI_Isend(&token, 1, MPI_INT, 1 - from, 0, MPI_COMM_WORLD, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            return;
        }
        MPI_Irecv(&token, 1, MPI_INT, from, 0, MPI_COMM_WORLD, &request);
        int done = 0;
        while (done == 0)
            MPI_Testall(1, &request, &done, MPI_STATUSES_IGNORE);
    });
}

void persistent_requests() {
    int token = 0;
    by_turns([&](int from) {
        MPI_Request request = MPI_REQUEST_NULL;
        if (rank() == from)
            MPI_Send_init(&token, 1, MPI_INT, 1 - from, 0, MPI_COMM_WORLD, &request);
        else
            MPI_Recv_init(&token, 1, MPI_INT, from, 0, MPI_COMM_WORLD, &request);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Request_free(&request);
    });
}

void status_of_a_request() {
    int token = 0;
    by_turns([&](int from) {
        MPI_Request request = MPI_REQUEST_NULL;
        if (rank() == from) return void(MPI_Send(&token, 1, MPI_INT, 1 - from, 0, MPI_COMM_WORLD));
        MPI_Irecv(&token, 1, MPI_INT, from, 0, MPI_COMM_WORLD, &request);
        int done = 0;
        while (done == 0)
            MPI_Request_get_status(request, &done, MPI_STATUS_IGNORE);
        only(kTarget, [] { g_seen = 1; });
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    });
}

void exchanges() {
    int token = 0;
    int other = 0;
    by_turns([&](int) {
        MPI_Sendrecv(&token, 1, MPI_INT, 1 - rank(), 0, &other, 1, MPI_INT, 1 - rank(), 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    });
}

// The message is received when the target has gone on.
void probes() {
    int token = 0;
    IntWindow window;
    only(kOrigin, [&] {
        put(window);
        MPI_Send(&token, 1, MPI_INT, kTarget, 0, MPI_COMM_WORLD);
    });
    only(kTarget, [&] {
        int there = 0;
        while (there == 0)
            MPI_Iprobe(kOrigin, 0, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
        window.base()[0] += 1;
        MPI_Recv(&token, 1, MPI_INT, kOrigin, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    });
    MPI_Barrier(MPI_COMM_WORLD);
}

void collectives() {
    int mine = 1;
    int sum = 0;
    by_turns([&](int) { MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD); });
    by_turns([&](int from) { MPI_Bcast(&mine, 1, MPI_INT, from, MPI_COMM_WORLD); });
    by_turns([&](int from) { MPI_Reduce(&mine, &sum, 1, MPI_INT, MPI_SUM, 1 - from, MPI_COMM_WORLD); });
    by_turns([&](int) {
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    });
}

// A process is a hundred collectives ahead of what the other one may still look at.
void many_collectives() {
    int value = 0;
    by_turns([&](int from) {
        for (int i = 0; i < 300; ++i)
            MPI_Bcast(&value, 1, MPI_INT, from, MPI_COMM_WORLD);
    });
}

void other_communicators() {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank(), &comm);
    by_turns([&](int) { MPI_Barrier(comm); });
    int token = 0;
    by_turns([&](int from) {
        if (rank() == from)
            MPI_Send(&token, 1, MPI_INT, from, 0, comm);
        else
            MPI_Recv(&token, 1, MPI_INT, 1 - from, 0, comm, MPI_STATUS_IGNORE);
    });
    // Ranks of the window are not those of the job.
    int* base = nullptr;
    MPI_Win window = MPI_WIN_NULL;
    MPI_Win_allocate(64, sizeof(int), MPI_INFO_NULL, comm, &base, &window);
    for (int round = 0; round < 3; ++round) {
        MPI_Win_fence(0, window);
        int value = 1;
        only(kOrigin, [&] { MPI_Put(&value, 1, MPI_INT, 0, 0, 1, MPI_INT, window); });
        MPI_Win_fence(0, window);
        only(kTarget, [&] { base[0] += 1; });
    }
    MPI_Win_free(&window);
    MPI_Comm_free(&comm);
}

// Another window's fence.
void another_window() {
    IntWindow other;
    by_turns([&](int) { MPI_Win_fence(0, other); });
}

// The target polls an element that the origin updates behind its put.
void atomics() {
    IntWindow window;
    MPI_Win_lock_all(0, window);
    int one = 1;
    int found = 0;
    only(kOrigin, [&] {
        MPI_Put(&one, 1, MPI_INT, kTarget, 0, 1, MPI_INT, window);
        MPI_Win_flush(kTarget, window);
        MPI_Accumulate(&one, 1, MPI_INT, kTarget, 20, 1, MPI_INT, MPI_REPLACE, window);
        MPI_Win_flush(kTarget, window);
    });
    only(kTarget, [&] {
        while (found == 0) {
            MPI_Fetch_and_op(nullptr, &found, MPI_INT, kTarget, 20, MPI_NO_OP, window);
            MPI_Win_flush(kTarget, window);
        }
        window.base()[0] += 1;
    });
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
}

// A get is complete at its target when the origin has its result.
void gets() {
    IntWindow window;
    int token = 0;
    int value = 0;
    only(kOrigin, [&] {
        MPI_Win_lock_all(0, window);
        MPI_Get(&value, 1, MPI_INT, kTarget, 0, 1, MPI_INT, window);
        MPI_Win_flush_local(kTarget, window);
        MPI_Send(&token, 1, MPI_INT, kTarget, 0, MPI_COMM_WORLD);
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Rget(&value, 1, MPI_INT, kTarget, 1, 1, MPI_INT, window, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Send(&token, 1, MPI_INT, kTarget, 0, MPI_COMM_WORLD);
        MPI_Win_unlock_all(window);
    });
    only(kTarget, [&] {
        for (int i = 0; i < 2; ++i) {
            MPI_Recv(&token, 1, MPI_INT, kOrigin, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            window.base()[i] += 1;
        }
    });
}

// Loads beside a get, and stores in the gaps of a type.
void other_bytes() {
    IntWindow window;
    int values[8] = {};
    MPI_Datatype even = MPI_DATATYPE_NULL;
    MPI_Type_vector(4, 1, 2, MPI_INT, &even);
    MPI_Type_commit(&even);
    MPI_Win_fence(0, window);
    only(kOrigin, [&] {
        MPI_Put(values, 4, MPI_INT, kTarget, 0, 1, even, window);
        MPI_Get(values + 4, 1, MPI_INT, kTarget, 10, 1, MPI_INT, window);
    });
    only(kTarget, [&] {
        for (int i = 1; i < 8; i += 2)
            window.base()[i] = i;
        g_seen = window.base()[10];
    });
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
    MPI_Type_free(&even);
}

// Memory of the program's own, which is another variable's when the window has gone.
void memory_again() {
    for (int round = 0; round < 20; ++round) {
        std::vector<int> memory(64, round);
        MPI_Win window = MPI_WIN_NULL;
        MPI_Win_create(memory.data(), 256, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
        MPI_Barrier(MPI_COMM_WORLD);
        only(kOrigin, [&] { put(window, round); });
        MPI_Win_free(&window);
        for (int& one : memory)
            one += 1;
    }
}

void dynamic_memory() {
    MPI_Win window = MPI_WIN_NULL;
    std::vector<int> memory(4);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_attach(window, memory.data(), 16);
    MPI_Aint address = 0;
    MPI_Get_address(memory.data(), &address);
    MPI_Bcast(&address, 1, MPI_AINT, kTarget, MPI_COMM_WORLD);
    for (int round = 0; round < 3; ++round) {
        only(kTarget, [&] { memory[0] += 1; });
        MPI_Win_fence(0, window);
        only(kOrigin, [&] { MPI_Put(&round, 1, MPI_INT, kTarget, address, 1, MPI_INT, window); });
        MPI_Win_fence(0, window);
    }
    MPI_Win_detach(window, memory.data());
    MPI_Win_free(&window);
}

// Another thread goes on behind the one that has received the message.
void threads() {
    IntWindow window;
    std::mutex mutex;
    std::thread other;
    bool received = false;
    int token = 0;
    only(kTarget, [&] {
        other = std::thread([&] {
            for (bool goes = true; goes;) {
                const std::lock_guard lock(mutex);
                if (received) {
                    window.base()[0] += 1;
                    goes = false;
                }
            }
        });
        MPI_Recv(&token, 1, MPI_INT, kOrigin, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        {
            const std::lock_guard lock(mutex);
            received = true;
        }
        other.join();
    });
    only(kOrigin, [&] {
        put(window);
        MPI_Send(&token, 1, MPI_INT, kTarget, 0, MPI_COMM_WORLD);
    });
    MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace

#define CASE(name) \
    { #name, &name }

const std::vector<Case> kRight = {CASE(fences),
                                  CASE(posts),
                                  CASE(exclusive_locks),
                                  CASE(exclusive_lock_and_lock_all),
                                  CASE(messages),
                                  CASE(synchronous_sends),
                                  CASE(requests),
                                  CASE(persistent_requests),
                                  CASE(status_of_a_request),
                                  CASE(exchanges),
                                  CASE(probes),
                                  CASE(collectives),
                                  CASE(many_collectives),
                                  CASE(other_communicators),
                                  CASE(another_window),
                                  CASE(atomics),
                                  CASE(gets),
                                  CASE(other_bytes),
                                  CASE(memory_again),
                                  CASE(dynamic_memory),
                                  CASE(threads)};

}  // namespace corpus
