// process_vm_readv and process_vm_writev forbidden, as containers and hardened systems do: a seccomp filter set before
// main() answers them with EPERM. Every flavour, every operation, contiguous and not, must still give the right data,
// also while the target computes.
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include "../mpi/harness.h"
#include "../mpi/windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Put", "MPI_Get", "MPI_Accumulate", "MPI_Get_accumulate", "MPI_Fetch_and_op",
             "MPI_Compare_and_swap", "MPI_Rput", "MPI_Rget", "MPI_Raccumulate", "MPI_Rget_accumulate")

using osct::Kind;
using osct::rank;
using osct::size;
using osct::Window;

namespace {

// Before MPI_Init, so that the probes of both libraries meet it.
__attribute__((constructor)) void forbid() {
    const unsigned refuse = SECCOMP_RET_ERRNO | EPERM;
    sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, refuse),
    };
    const sock_fprog program{sizeof filter / sizeof filter[0], filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0)
        return;
    std::perror("forbidden_cma: the system has no seccomp filters");
    std::_Exit(1);
}

constexpr int kLongs = 2000;

// What the left neighbour writes, in rounds.
long pattern(int origin, long i) {
    return origin * 100000 + i * 3 + 1;
}

void put_get_and_requests(Window& window, int target) {
    const MPI_Win win = window.handle();
    std::vector<long> out(kLongs), back(kLongs, -1);
    for (int i = 0; i < kLongs; ++i)
        out[static_cast<std::size_t>(i)] = pattern(rank(), i);
    const MPI_Aint at = window.at(target, 0);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
    CHECK_OK(MPI_Put(out.data(), kLongs, MPI_LONG, target, at, kLongs, MPI_LONG, win));
    MPI_Win_flush(target, win);
    CHECK_OK(MPI_Get(back.data(), kLongs, MPI_LONG, target, at, kLongs, MPI_LONG, win));
    MPI_Win_flush(target, win);
    CHECK_ALL(back.data(), back.size(), [&](std::size_t i) { return pattern(rank(), static_cast<long>(i)); });
    MPI_Request request = MPI_REQUEST_NULL;
    CHECK_OK(MPI_Rput(out.data() + 5, 10, MPI_LONG, target, at, 10, MPI_LONG, win, &request));
    CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    MPI_Win_flush(target, win);
    CHECK_OK(MPI_Rget(back.data(), 20, MPI_LONG, target, at, 20, MPI_LONG, win, &request));
    CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
    CHECK_ALL(back.data(), 20, [&](std::size_t i) { return out[i < 10 ? i + 5 : i]; });
    MPI_Win_unlock(target, win);
}

void derived_types(Window& window, int target) {
    const MPI_Win win = window.handle();
    MPI_Datatype every_third, reversed;
    MPI_Type_vector(300, 1, 3, MPI_LONG, &every_third);
    std::vector<int> places(300);
    for (int i = 0; i < 300; ++i)
        places[static_cast<std::size_t>(i)] = 2 * (299 - i);
    MPI_Type_create_indexed_block(300, 1, places.data(), MPI_LONG, &reversed);
    MPI_Type_commit(&every_third);
    MPI_Type_commit(&reversed);
    std::vector<long> out(900), back(300, -1);
    for (std::size_t i = 0; i < out.size(); ++i)
        out[i] = pattern(rank(), static_cast<long>(i));
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
    CHECK_OK(MPI_Put(out.data(), 1, every_third, target, window.at(target, 0), 1, reversed, win));
    MPI_Win_flush(target, win);
    CHECK_OK(MPI_Get(back.data(), 300, MPI_LONG, target, window.at(target, 0), 1, reversed, win));
    MPI_Win_flush(target, win);
    CHECK_ALL(back.data(), back.size(), [&](std::size_t i) { return out[3 * i]; });
    CHECK_OK(MPI_Accumulate(out.data(), 1, every_third, target, window.at(target, 0), 1, reversed, MPI_SUM, win));
    MPI_Win_flush(target, win);
    CHECK_OK(MPI_Get(back.data(), 300, MPI_LONG, target, window.at(target, 0), 1, reversed, win));
    MPI_Win_unlock(target, win);
    CHECK_ALL(back.data(), back.size(), [&](std::size_t i) { return 2 * out[3 * i]; });
    MPI_Type_free(&every_third);
    MPI_Type_free(&reversed);
}

// Everybody, the owner too, adds to the same elements of rank 0 by every form.
void atomics(Window& window) {
    const MPI_Win win = window.handle();
    constexpr int kRounds = 200, kElements = 1500;
    std::vector<long> ones(kElements, 1), back(kElements);
    const long one = 1;
    MPI_Request request = MPI_REQUEST_NULL;
    const MPI_Aint at = window.at(0, 0);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < kRounds; ++i) {
        switch ((i + rank()) % 6) {
            case 0:
                CHECK_OK(MPI_Accumulate(ones.data(), kElements, MPI_LONG, 0, at, kElements, MPI_LONG, MPI_SUM, win));
                break;
            case 1:
                CHECK_OK(MPI_Get_accumulate(ones.data(), kElements, MPI_LONG, back.data(), kElements, MPI_LONG, 0, at,
                                            kElements, MPI_LONG, MPI_SUM, win));
                break;
            case 2:
                CHECK_OK(MPI_Raccumulate(ones.data(), kElements, MPI_LONG, 0, at, kElements, MPI_LONG, MPI_SUM, win,
                                         &request));
                CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
                break;
            case 3:
                CHECK_OK(MPI_Rget_accumulate(ones.data(), kElements, MPI_LONG, back.data(), kElements, MPI_LONG, 0, at,
                                             kElements, MPI_LONG, MPI_SUM, win, &request));
                CHECK_OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
                break;
            case 4:
                CHECK_OK(MPI_Fetch_and_op(&one, back.data(), MPI_LONG, 0, at, MPI_SUM, win));
                CHECK_OK(MPI_Accumulate(ones.data(), kElements - 1, MPI_LONG, 0, window.at(0, 8), kElements - 1,
                                        MPI_LONG, MPI_SUM, win));
                break;
            default: {
                long old = 0, expected = 0;
                do {
                    expected = old;
                    const long wanted = expected + 1;
                    CHECK_OK(MPI_Compare_and_swap(&wanted, &expected, &old, MPI_LONG, 0, at, win));
                    MPI_Win_flush(0, win);
                } while (old != expected);
                CHECK_OK(MPI_Accumulate(ones.data(), kElements - 1, MPI_LONG, 0, window.at(0, 8), kElements - 1,
                                        MPI_LONG, MPI_SUM, win));
            }
        }
        MPI_Win_flush(0, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() == 0)
        CHECK_ALL(window.base<long>(), kElements, [](std::size_t) { return static_cast<long>(kRounds) * size(); });
    MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace

CASE(the_filter_works) {
    char from = 1, to = 0;
    const iovec local{&to, 1}, remote{&from, 1};
    CHECK(process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == -1 && errno == EPERM);
}

CASE(puts_and_gets) {
    for (const Kind kind : osct::kAllKinds) {
        Window window(kind, kLongs * sizeof(long));
        for (int step = 0; step < size(); ++step) {
            put_get_and_requests(window, (rank() + step) % size());
            MPI_Barrier(MPI_COMM_WORLD);
            derived_types(window, (rank() + step) % size());
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
}

CASE(atomic_operations) {
    for (const Kind kind : osct::kAllKinds) {
        Window window(kind, kLongs * sizeof(long));
        atomics(window);
    }
}

// The target's application thread stays out of MPI.
CASE(target_that_computes) {
    SKIP_IF(size() < 2);
    for (const Kind kind : osct::kAllKinds) {
        Window window(kind, 64);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank() == 0) {
            osct::compute(0.5);
        } else {
            const double begin = osct::now();
            const long one = 1;
            long seen = 0;
            MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window.handle());
            CHECK_OK(MPI_Fetch_and_op(&one, &seen, MPI_LONG, 0, window.at(0, 0), MPI_SUM, window.handle()));
            MPI_Win_unlock(0, window.handle());
            CHECK(osct::now() - begin < 0.4);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank() == 0) CHECK_EQ(window.base<long>()[0], size() - 1L);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}
