// Cross-memory access forbidden by a seccomp filter, as in many containers, installed before MPI_Init: memory that is
// not shared (MPI_Win_create over malloc and static memory, dynamic windows) is then served by the target's agent.
// Everything that works elsewhere works there: all operations, derived datatypes, atomicity with the owner's own
// updates, a target that computes.
#include <dirent.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>

#include "../mpi/harness.h"

// Of the spy; absent when the host runs alone.
extern "C" unsigned long long spy_other_threads() __attribute__((weak));

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_create", "MPI_Win_create_dynamic", "MPI_Put", "MPI_Get", "MPI_Accumulate",
             "MPI_Get_accumulate", "MPI_Fetch_and_op", "MPI_Compare_and_swap", "MPI_Win_lock_all", "MPI_Win_flush",
             "MPI_Win_fence")

using osct::rank;
using osct::size;

namespace {

// Before main(), so that every thread and the host MPI run under it.
__attribute__((constructor)) void forbid_cross_memory_access() {
    sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog filter{sizeof code / sizeof code[0], code};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
        std::perror("cma_forbidden: seccomp");
        std::_Exit(1);
    }
}

alignas(64) char static_memory[4096];

// A window over private memory of `bytes` zeroed bytes; displacements by `at`.
class Private {
  public:
    Private(bool dynamic, std::size_t bytes) : dynamic_(dynamic), memory_(std::make_unique<char[]>(bytes + 8)) {
        base_ = memory_.get() + 8;  // not aligned to more than the host's malloc happens to give
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

// Threads of this process that bear the agent's name.
int agents() {
    int count = 0;
    DIR* threads = ::opendir("/proc/self/task");
    while (const dirent* entry = threads != nullptr ? ::readdir(threads) : nullptr) {
        const std::string path = std::string("/proc/self/task/") + entry->d_name + "/comm";
        std::FILE* file = std::fopen(path.c_str(), "r");
        if (file == nullptr) continue;
        char name[32] = "";
        if (std::fgets(name, sizeof name, file) != nullptr && std::strcmp(name, "osc-agent\n") == 0) ++count;
        std::fclose(file);
    }
    if (threads != nullptr) ::closedir(threads);
    return count;
}

}  // namespace

CASE(the_filter_works) {
    char a = 0;
    iovec here{&a, 1};
    CHECK_EQ(::process_vm_readv(::getpid(), &here, 1, &here, 1, 0), -1L);
    CHECK_EQ(errno, EPERM);
}

CASE(one_agent_however_many_windows) {
    HOST_CANNOT("it has no agents");
    SKIP_IF(size() < 2);
    const Private first(false, 64), second(true, 64), third(false, 64);
    CHECK_EQ(agents(), 1);
}

CASE(puts_and_gets) {
    for (const bool dynamic : {false, true}) {
        const std::size_t n = 1000;
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
    const int next = (rank() + 1) % size();
    CHECK_OK(MPI_Put(&value, 1, MPI_INT, next, 100, 1, MPI_INT, win));
    CHECK_OK(MPI_Accumulate(&value, 1, MPI_INT, 0, 200, 1, MPI_INT, MPI_SUM, win));
    MPI_Win_fence(0, win);
    const int* seen = reinterpret_cast<const int*>(static_memory);
    CHECK_EQ(seen[100], (rank() + size() - 1) % size() + 1);
    if (rank() == 0) CHECK_EQ(seen[200], size() * (size() + 1) / 2);
    MPI_Win_free(&win);
}

// Every accumulate form at once on one element, the owner's own among them: the total is exact.
CASE(atomics_of_all_forms_add_up) {
    const int each = osct::full() ? 20000 : 400;
    for (const bool dynamic : {false, true}) {
        const Private window(dynamic, 64 * 8);
        const std::int64_t one = 1;
        std::vector<std::int64_t> ones(64, 1), old(64);
        MPI_Win_lock_all(0, window.win);
        const MPI_Aint at = window.at(0, 0);
        for (int i = 0; i < each; ++i) {
            switch ((i + rank()) % 4) {
                case 0:
                    MPI_Accumulate(&one, 1, MPI_INT64_T, 0, at, 1, MPI_INT64_T, MPI_SUM, window.win);
                    break;
                case 1:
                    MPI_Fetch_and_op(&one, old.data(), MPI_INT64_T, 0, at, MPI_SUM, window.win);
                    break;
                case 2:
                    MPI_Get_accumulate(ones.data(), 64, MPI_INT64_T, old.data(), 64, MPI_INT64_T, 0, at, 64,
                                       MPI_INT64_T, MPI_SUM, window.win);
                    break;
                default: {
                    std::int64_t seen = 0, expected = 0;
                    do {
                        expected = seen;
                        const std::int64_t wanted = expected + 1;
                        MPI_Compare_and_swap(&wanted, &expected, &seen, MPI_INT64_T, 0, at, window.win);
                        MPI_Win_flush(0, window.win);
                    } while (seen != expected);
                }
            }
            MPI_Win_flush(0, window.win);
        }
        MPI_Win_unlock_all(window.win);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank() == 0) {
            CHECK_EQ(window.base<std::int64_t>()[0], static_cast<std::int64_t>(each) * size());
            CHECK_EQ(window.base<std::int64_t>()[63], static_cast<std::int64_t>(each / 4) * size());
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

CASE(derived_datatypes) {
    constexpr int kBlocks = 3000;
    MPI_Datatype stride = MPI_DATATYPE_NULL;
    MPI_Type_vector(kBlocks, 2, 5, MPI_INT, &stride);
    MPI_Type_commit(&stride);
    for (const bool dynamic : {false, true}) {
        const Private window(dynamic, kBlocks * 5 * sizeof(int));
        const int target = (rank() + 1) % size();
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
        const int origin = (rank() + size() - 1) % size();
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
        const int target = (rank() + 1) % size();
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

// The target computes, outside MPI, for longer than all that its peers want from it takes.
CASE(a_computing_target_delays_nobody) {
    HOST_CANNOT("its targets must enter MPI");
    SKIP_IF(size() < 2);
    for (const bool dynamic : {false, true}) {
        const Private window(dynamic, 64);
        const double seconds = 1;
        MPI_Win_lock_all(0, window.win);
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = osct::now();
        if (rank() == 0) {
            osct::compute(seconds);
        } else {
            const std::int64_t one = 1;
            std::int64_t old = 0;
            for (int i = 0; i < 10; ++i) {
                CHECK_OK(MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, window.at(0, 0), MPI_SUM, window.win));
                MPI_Win_flush(0, window.win);
            }
            CHECK(osct::now() - begin < seconds / 2);
        }
        MPI_Win_unlock_all(window.win);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank() == 0) CHECK_EQ(window.base<std::int64_t>()[0], 10L * (size() - 1));
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

// What a target does not expose is refused with the window's error class, and the agent goes on.
CASE(bad_places_are_refused) {
    HOST_CANNOT("it does not check");
    SKIP_IF(size() < 2);
    for (const bool dynamic : {false, true}) {
        const Private window(dynamic, 64);
        const int target = (rank() + 1) % size();
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

// The last case: of all that the agents have done so far, nothing went to the host MPI, which was initialised for one
// thread.
CASE(no_agent_calls_the_host) {
    SKIP_IF(size() < 2);
    HOST_CANNOT("it has no agents");
    const Private window(false, 64);
    CHECK_EQ(agents(), 1);
    CHECK(spy_other_threads != nullptr);
    if (spy_other_threads != nullptr) CHECK_EQ(spy_other_threads(), 0ull);
}
