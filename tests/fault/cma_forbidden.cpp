// process_vm_readv and process_vm_writev forbidden, as in many containers: a seccomp filter, installed before main(),
// answers them with EPERM. Windows of every flavour and all operations must still work, also while the target computes.
// The target's agent serves memory that is not shared: that of MPI_Win_create and of dynamic windows.
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>

#include "../mpi/harness.h"
#include "../mpi/windows.h"
#include "refuse_calls.h"

// A function of the spy; absent when the host runs alone.
extern "C" unsigned long long spy_other_threads() __attribute__((weak));

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_create", "MPI_Win_create_dynamic", "MPI_Put", "MPI_Get", "MPI_Accumulate",
             "MPI_Get_accumulate", "MPI_Fetch_and_op", "MPI_Compare_and_swap", "MPI_Rput", "MPI_Rget",
             "MPI_Raccumulate", "MPI_Rget_accumulate", "MPI_Win_lock_all", "MPI_Win_flush", "MPI_Win_fence")

namespace {

// Runs before MPI_Init, so that the probes of libosc and of the host meet the filter. Other tests share the executable.
__attribute__((constructor)) void forbid(int argc, char** argv, char**) {
    if (argc < 2 || std::strcmp(argv[1], OSCT_NAME) != 0) return;
    if (refuse_calls(SYS_process_vm_readv, SYS_process_vm_writev)) return;
    std::perror("cma_forbidden: the system has no seccomp filters");
    std::_Exit(1);
}

constexpr int kLongs = 2000;

// The data that rank `origin` writes.
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
    std::vector<int> displacements(300);
    for (int i = 0; i < 300; ++i)
        displacements[static_cast<std::size_t>(i)] = 2 * (299 - i);
    MPI_Type_create_indexed_block(300, 1, displacements.data(), MPI_LONG, &reversed);
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

// All processes, also the owner, add to the same elements of rank 0 with every accumulate call.
void atomics(Window& window) {
    const MPI_Win win = window.handle();
    constexpr int kRounds = 200, kElements = 1500;
    std::vector<long> ones(kElements, 1), back(kElements);
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
                CHECK_OK(MPI_Fetch_and_op(ones.data(), back.data(), MPI_LONG, 0, at, MPI_SUM, win));
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

alignas(64) char static_memory[4096];

// A window over `bytes` zeroed bytes of private memory, created or dynamic. at() gives displacements.
class Private {
  public:
    Private(bool dynamic, std::size_t bytes) : dynamic_(dynamic), memory_(std::make_unique<char[]>(bytes + 8)) {
        base_ = memory_.get() + 8;  // aligned to 8 bytes only
        addresses_.resize(static_cast<std::size_t>(size()));
        const auto length = static_cast<MPI_Aint>(bytes);
        MPI_Aint address = 0;
        if (dynamic) {
            CHECK_OK(MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win));
            CHECK_OK(MPI_Win_attach(win, base_, length));
            MPI_Get_address(base_, &address);
        } else {
            CHECK_OK(MPI_Win_create(base_, length, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
        }
        MPI_Allgather(&address, 1, MPI_AINT, addresses_.data(), 1, MPI_AINT, MPI_COMM_WORLD);
    }
    ~Private() {
        MPI_Barrier(MPI_COMM_WORLD);
        if (dynamic_) CHECK_OK(MPI_Win_detach(win, base_));
        CHECK_OK(MPI_Win_free(&win));
    }
    Private(const Private&) = delete;
    Private& operator=(const Private&) = delete;

    MPI_Aint at(int target, std::size_t byte) const {
        return addresses_[static_cast<std::size_t>(target)] + static_cast<MPI_Aint>(byte);
    }
    template <class T>
    T* base() const {
        return reinterpret_cast<T*>(base_);
    }
    MPI_Win win = MPI_WIN_NULL;

  private:
    bool dynamic_;
    std::unique_ptr<char[]> memory_;
    char* base_;
    std::vector<MPI_Aint> addresses_;
};

// The number of this process's threads with the agent's name.
int agents() {
    int count = 0;
    for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
        std::ifstream comm(thread.path() / "comm");
        std::string name;
        if (std::getline(comm, name) && name == "osc-agent") ++count;
    }
    return count;
}

}  // namespace

CASE(the_filter_works) {
    char byte = 0;
    const iovec local{&byte, 1}, remote{&byte, 1};
    CHECK(process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == -1 && errno == EPERM);
}

CASE(puts_gets_and_requests) {
    for (const WindowKind kind : kAllWindowKinds) {
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
    for (const WindowKind kind : kAllWindowKinds) {
        Window window(kind, kLongs * sizeof(long));
        atomics(window);
    }
}

// The target computes outside MPI; its peers must not wait for it.
CASE(a_computing_target_delays_no_origin) {
    SKIP_IF(size() < 2);
    for (const WindowKind kind : kAllWindowKinds) {
        Window window(kind, 64);
        osct::while_one_computes(0, [&] {
            const long one = 1;
            long seen = 0;
            MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window.handle());
            for (int i = 0; i < 10; ++i) {
                CHECK_OK(MPI_Fetch_and_op(&one, &seen, MPI_LONG, 0, window.at(0, 0), MPI_SUM, window.handle()));
                MPI_Win_flush(0, window.handle());
            }
            MPI_Win_unlock(0, window.handle());
        });
        if (rank() == 0) CHECK_EQ(window.base<long>()[0], 10L * (size() - 1));
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

CASE(one_agent_serves_all_windows) {
    SKIP_IF(size() < 2);
    const Private first(false, 64), second(true, 64), third(false, 64);
    CHECK_EQ(agents(), 1);
}

CASE(puts_to_all_targets_at_once) {
    for (const bool dynamic : {false, true}) {
        constexpr std::size_t n = 1000;
        const Private window(dynamic, n * 8 * static_cast<std::size_t>(size()));
        std::vector<std::int64_t> out(n), in(n);
        MPI_Win_lock_all(0, window.win);
        for (int target = 0; target < size(); ++target) {
            for (const std::size_t count : {std::size_t{1}, n}) {
                std::iota(out.begin(), out.end(), rank() * 1000 + target * 100000);
                const MPI_Aint at = window.at(target, n * 8 * static_cast<std::size_t>(rank()));
                const int c = static_cast<int>(count);
                CHECK_OK(MPI_Put(out.data(), c, MPI_INT64_T, target, at, c, MPI_INT64_T, window.win));
                MPI_Win_flush(target, window.win);
                CHECK_OK(MPI_Get(in.data(), c, MPI_INT64_T, target, at, c, MPI_INT64_T, window.win));
                MPI_Win_flush(target, window.win);
                CHECK_ALL(in.data(), count, [&](std::size_t i) { return out[i]; });
            }
        }
        MPI_Win_unlock_all(window.win);
        MPI_Barrier(MPI_COMM_WORLD);
        for (int origin = 0; origin < size(); ++origin)
            CHECK_ALL(window.base<std::int64_t>() + n * static_cast<std::size_t>(origin), n,
                      [&](std::size_t i) { return origin * 1000 + rank() * 100000 + static_cast<std::int64_t>(i); });
    }
}

CASE(static_memory_and_fences) {
    MPI_Win win = MPI_WIN_NULL;
    std::memset(static_memory, 0, sizeof static_memory);
    CHECK_OK(MPI_Win_create(static_memory, sizeof static_memory, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    MPI_Win_fence(0, win);
    const int value = rank() + 1;
    const int next = right();
    CHECK_OK(MPI_Put(&value, 1, MPI_INT, next, 100, 1, MPI_INT, win));
    CHECK_OK(MPI_Accumulate(&value, 1, MPI_INT, 0, 200, 1, MPI_INT, MPI_SUM, win));
    MPI_Win_fence(0, win);
    const int* seen = reinterpret_cast<const int*>(static_memory);
    CHECK_EQ(seen[100], left() + 1);
    if (rank() == 0) CHECK_EQ(seen[200], size() * (size() + 1) / 2);
    MPI_Win_free(&win);
}

CASE(derived_datatypes_in_private_memory) {
    constexpr int kBlocks = 3000;
    MPI_Datatype stride = MPI_DATATYPE_NULL;
    MPI_Type_vector(kBlocks, 2, 5, MPI_INT, &stride);
    MPI_Type_commit(&stride);
    for (const bool dynamic : {false, true}) {
        const Private window(dynamic, kBlocks * 5 * sizeof(int));
        const int target = right();
        std::vector<int> out(kBlocks * 2), in(kBlocks * 2), old(kBlocks * 2);
        std::iota(out.begin(), out.end(), rank() * 7);
        MPI_Win_lock_all(0, window.win);
        const MPI_Aint at = window.at(target, 0);
        CHECK_OK(MPI_Put(out.data(), kBlocks * 2, MPI_INT, target, at, 1, stride, window.win));
        MPI_Win_flush(target, window.win);
        CHECK_OK(MPI_Get_accumulate(out.data(), kBlocks * 2, MPI_INT, old.data(), kBlocks * 2, MPI_INT, target, at, 1,
                                    stride, MPI_SUM, window.win));
        MPI_Win_flush(target, window.win);
        CHECK_OK(MPI_Get(in.data(), kBlocks * 2, MPI_INT, target, at, 1, stride, window.win));
        MPI_Win_flush(target, window.win);
        MPI_Win_unlock_all(window.win);
        CHECK_ALL(old.data(), old.size(), [&](std::size_t i) { return out[i]; });
        CHECK_ALL(in.data(), in.size(), [&](std::size_t i) { return 2 * out[i]; });
        MPI_Barrier(MPI_COMM_WORLD);
        const int origin = left();
        CHECK_ALL(window.base<int>(), kBlocks * 5 - 3, [&](std::size_t i) {
            return i % 5 < 2 ? 2 * (origin * 7 + static_cast<int>(i / 5 * 2 + i % 5)) : 0;
        });
    }
    MPI_Type_free(&stride);
}

CASE(sixteen_mebibytes) {
    const std::size_t bytes = std::size_t{16} << 20;
    for (const bool dynamic : {false, true}) {
        const Private window(dynamic, bytes);
        const int target = right();
        const int count = static_cast<int>(bytes / 8);
        std::vector<std::uint64_t> out(bytes / 8), in(bytes / 8);
        for (std::size_t i = 0; i < out.size(); ++i)
            out[i] = i * 2654435761u + static_cast<std::uint64_t>(rank());
        MPI_Win_lock_all(0, window.win);
        const MPI_Aint at = window.at(target, 0);
        CHECK_OK(MPI_Put(out.data(), count, MPI_UINT64_T, target, at, count, MPI_UINT64_T, window.win));
        MPI_Win_flush(target, window.win);
        CHECK_OK(MPI_Get(in.data(), count, MPI_UINT64_T, target, at, count, MPI_UINT64_T, window.win));
        MPI_Win_flush(target, window.win);
        MPI_Win_unlock_all(window.win);
        CHECK_ALL(in.data(), in.size(), [&](std::size_t i) { return out[i]; });
    }
}

// An access outside the window is an error of the call, and the agent serves the next one.
CASE(accesses_outside_the_window_are_refused) {
    SKIP_IF(size() < 2);
    for (const bool dynamic : {false, true}) {
        const Private window(dynamic, 64);
        const int target = right();
        const std::int64_t value = 3;
        MPI_Win_set_errhandler(window.win, MPI_ERRORS_RETURN);
        MPI_Win_lock_all(0, window.win);
        CHECK_CLASS(MPI_Put(&value, 1, MPI_INT64_T, target, window.at(target, 64), 1, MPI_INT64_T, window.win),
                    MPI_ERR_RMA_RANGE);
        CHECK_OK(MPI_Put(&value, 1, MPI_INT64_T, target, window.at(target, 8), 1, MPI_INT64_T, window.win));
        MPI_Win_unlock_all(window.win);
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_EQ(window.base<std::int64_t>()[1], 3);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

// The last case: no agent has called the host MPI, which was initialised for one thread.
CASE(no_agent_calls_the_host) {
    SKIP_IF(size() < 2);
    const Private window(false, 64);
    CHECK_EQ(agents(), 1);
    CHECK(spy_other_threads != nullptr);
    if (spy_other_threads != nullptr) CHECK_EQ(spy_other_threads(), 0ull);
}
