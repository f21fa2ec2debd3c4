// Faults of the fabric at the creation of windows and afterwards: one process's libfabric fails (fake_libfabric), or
// its descriptors end. The windows of all processes are served by the same library, or their creation fails with the
// same class; results are right, and nothing hangs.
//
//   fault_fabric_faults served|host|refused   windows of all kinds, and which library serves them
//   fault_fabric_faults any                   the same, by libosc or by the host
//   fault_fabric_faults no_memory             rank 1 cannot register large memory: its large put has a fault, no other
//   fault_fabric_faults descriptors           rank 1 has 0, 1, 2, ... descriptors left when it creates windows
//   fault_fabric_faults insert                rank 1 cannot reach rank 0: its operations have a fault
#include <dlfcn.h>
#include <mpi.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plain_checks.h"

namespace {

using osct::class_of;
using osct::g_failures;

constexpr int kWords = 1 << 17;  // of a window: 1 MiB
constexpr int kPieces = 64;
constexpr int kMany = 1 << 19;  // words of a transfer too large to register: 4 MiB

int g_rank = 0;
int g_size = 0;

// The same on all processes; else a failure.
int agreed(int mine, const char* what) {
    int least = 0;
    int most = 0;
    MPI_Allreduce(&mine, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&mine, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    osct::expect(least == most, what);
    return most;
}

unsigned long long served(const char* function) {
    using Served = unsigned long long(const char*);
    auto* const count = reinterpret_cast<Served*>(::dlsym(RTLD_DEFAULT, "osc_served"));
    return count != nullptr ? count(function) : 0;
}

std::int64_t value(int rank, int index) {
    return rank * std::int64_t{1000003} + index;
}

// A put of the whole window in pieces, a get of what another process put, and accumulates of all on one element.
void use(MPI_Win win, const std::int64_t* base, const std::vector<MPI_Aint>& starts) {
    const int right = (g_rank + 1) % g_size;
    const int left = (g_rank + g_size - 1) % g_size;
    const auto at = [&](int rank, int word) {
        return starts[static_cast<std::size_t>(rank)] + static_cast<MPI_Aint>(word) * MPI_Aint{sizeof(std::int64_t)};
    };
    std::vector<std::int64_t> out(kWords), in(kWords, -1);
    for (int i = 0; i < kWords; ++i)
        out[static_cast<std::size_t>(i)] = value(g_rank, i);
    const int piece = kWords / kPieces;
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < kPieces; ++i)
        osct::expect(MPI_Put(out.data() + i * piece, piece, MPI_INT64_T, right, at(right, i * piece), piece,
                             MPI_INT64_T, win) == MPI_SUCCESS,
                     "a put failed");
    osct::expect(MPI_Win_flush_all(win) == MPI_SUCCESS, "the flush of the puts failed");
    osct::expect(MPI_Get(in.data(), kWords, MPI_INT64_T, right, at(right, 0), kWords, MPI_INT64_T, win) == MPI_SUCCESS,
                 "a get failed");
    osct::expect(MPI_Win_flush(right, win) == MPI_SUCCESS, "the flush of the get failed");
    osct::expect(in == out, "a get brought other data than was put");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(win);
    osct::expect(base[0] == value(left, 0) && base[kWords - 1] == value(left, kWords - 1),
                 "other data arrived than was put");
    MPI_Barrier(MPI_COMM_WORLD);
    for (int target = 0; target < g_size; ++target) {
        const std::int64_t one = 1;
        std::int64_t before = 0;
        for (int i = 0; i < 10; ++i)
            MPI_Accumulate(&one, 1, MPI_INT64_T, target, at(target, 0), 1, MPI_INT64_T, MPI_SUM, win);
        MPI_Fetch_and_op(&one, &before, MPI_INT64_T, target, at(target, 0), MPI_SUM, win);
        osct::expect(MPI_Win_flush(target, win) == MPI_SUCCESS, "the flush of accumulates failed");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(win);
    osct::expect(base[0] == value(left, 0) + 11 * g_size, "accumulates have another sum");
    osct::expect(MPI_Win_unlock_all(win) == MPI_SUCCESS, "unlock_all failed");
    MPI_Barrier(MPI_COMM_WORLD);
    for (int target = 0; target < g_size; ++target) {
        osct::expect(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win) == MPI_SUCCESS, "a lock failed");
        const std::int64_t mine = value(g_rank, target);
        MPI_Put(&mine, 1, MPI_INT64_T, target, at(target, 1 + g_rank), 1, MPI_INT64_T, win);
        osct::expect(MPI_Win_unlock(target, win) == MPI_SUCCESS, "an unlock failed");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, g_rank, 0, win);
    for (int rank = 0; rank < g_size; ++rank)
        osct::expect(base[1 + rank] == value(rank, g_rank), "a put under a lock did not arrive");
    MPI_Win_unlock(g_rank, win);
    MPI_Barrier(MPI_COMM_WORLD);
}

/// Who serves the windows: 1 libosc, 0 the host, -1 nobody.
enum Outcome : int { kRefused = -1, kHost, kServed };

Outcome create_and_use(const char* function, const std::function<int(MPI_Win&, std::int64_t*&)>& create) {
    const unsigned long long before = served(function);
    MPI_Win win = MPI_WIN_NULL;
    std::int64_t* base = nullptr;
    const int error = agreed(class_of(create(win, base)), "the classes of a creation differ");
    if (error != MPI_SUCCESS) return kRefused;
    const int by_osc = agreed(served(function) > before ? 1 : 0, "two libraries serve one window");
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    std::vector<MPI_Aint> starts(static_cast<std::size_t>(g_size));
    int* flavor = nullptr;
    int found = 0;
    MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, static_cast<void*>(&flavor), &found);
    if (found && *flavor == MPI_WIN_FLAVOR_DYNAMIC) {
        MPI_Aint mine = 0;
        MPI_Get_address(base, &mine);
        MPI_Allgather(&mine, 1, MPI_AINT, starts.data(), 1, MPI_AINT, MPI_COMM_WORLD);
    }
    use(win, base, starts);
    if (found && *flavor == MPI_WIN_FLAVOR_DYNAMIC) MPI_Win_detach(win, base);
    osct::expect(MPI_Win_free(&win) == MPI_SUCCESS, "MPI_Win_free failed");
    return by_osc != 0 ? kServed : kHost;
}

void all_kinds(Outcome wanted, bool any) {
    constexpr MPI_Aint kBytes = MPI_Aint{kWords} * MPI_Aint{sizeof(std::int64_t)};
    std::vector<std::int64_t> own(kWords);
    MPI_Info atomics = MPI_INFO_NULL;
    MPI_Info_create(&atomics);
    MPI_Info_set(atomics, "osc_atomics", "provider");
    const auto expect = [&](Outcome outcome, const char* what) {
        if (any && outcome == kHost && g_rank == 0) std::printf("by the host\n");
        osct::expect(outcome == wanted || (any && outcome == kHost), what);
    };
    expect(create_and_use("MPI_Win_allocate",
                          [&](MPI_Win& win, std::int64_t*& base) {
                              return MPI_Win_allocate(kBytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
                          }),
           "MPI_Win_allocate: not the expected library");
    expect(create_and_use("MPI_Win_create",
                          [&](MPI_Win& win, std::int64_t*& base) {
                              base = own.data();
                              return MPI_Win_create(base, kBytes, 1, atomics, MPI_COMM_WORLD, &win);
                          }),
           "MPI_Win_create: not the expected library");
    expect(create_and_use("MPI_Win_create_dynamic",
                          [&](MPI_Win& win, std::int64_t*& base) {
                              base = own.data();
                              const int error = MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
                              return error != MPI_SUCCESS ? error : MPI_Win_attach(win, base, kBytes);
                          }),
           "MPI_Win_create_dynamic: not the expected library");
    MPI_Info_free(&atomics);
}

// Leaves this process `count` descriptors.
class FewDescriptors {
  public:
    explicit FewDescriptors(int count) {
        ::getrlimit(RLIMIT_NOFILE, &before_);
        const rlimit low{200, before_.rlim_max};
        ::setrlimit(RLIMIT_NOFILE, &low);
        for (int one = 0; (one = ::eventfd(0, EFD_CLOEXEC)) >= 0;)
            taken_.push_back(one);
        for (int i = 0; i < count && !taken_.empty(); ++i) {
            ::close(taken_.back());
            taken_.pop_back();
        }
    }
    ~FewDescriptors() {
        for (const int one : taken_)
            ::close(one);
        ::setrlimit(RLIMIT_NOFILE, &before_);
    }
    FewDescriptors(const FewDescriptors&) = delete;
    FewDescriptors& operator=(const FewDescriptors&) = delete;

  private:
    rlimit before_{};
    std::vector<int> taken_;
};

// The host serves windows of the communicators that are made while there are too few, and libosc the later ones.
void few_descriptors() {
    std::vector<std::int64_t> own(kWords);
    MPI_Win first = MPI_WIN_NULL;  // on one node: what the two libraries open once is open
    MPI_Win_create(own.data(), 8, 8, MPI_INFO_NULL, MPI_COMM_SELF, &first);
    MPI_Win_free(&first);
    // The host's UCX ends the program if it connects without descriptors.
    std::vector<std::int64_t> theirs(kWords);
    MPI_Sendrecv(own.data(), kWords, MPI_INT64_T, 1 - g_rank, 0, theirs.data(), kWords, MPI_INT64_T, 1 - g_rank, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    const int step = std::getenv("OSC_TEST_FULL") != nullptr ? 1 : 5;
    Outcome last = kRefused;
    bool by_host = false;
    for (int left = 0; last != kServed && left < 100; left += step) {
        MPI_Comm comm = MPI_COMM_NULL;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        std::unique_ptr<FewDescriptors> few;
        if (g_rank == 1) few = std::make_unique<FewDescriptors>(left);
        last = create_and_use("MPI_Win_create", [&](MPI_Win& win, std::int64_t*& base) {
            base = own.data();
            return MPI_Win_create(base, MPI_Aint{kWords} * 8, 1, MPI_INFO_NULL, comm, &win);
        });
        osct::expect(last != kRefused, "a creation failed");
        by_host = by_host || last == kHost;
        few = nullptr;
        MPI_Comm_free(&comm);
    }
    osct::expect(by_host && last == kServed, "more descriptors change nothing");
}

// Rank 1's operation on rank 0 has a fault of this class, at the call or at the flush.
void one_fails(int words, int expected, bool others_work) {
    std::int64_t* base = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    const int created = MPI_Win_allocate(MPI_Aint{kMany} * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    osct::expect(created == MPI_SUCCESS, "MPI_Win_allocate failed");
    if (agreed(class_of(created), "the classes of a creation differ") != MPI_SUCCESS) return;
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    std::vector<std::int64_t> out(kMany, g_rank);
    base[0] = base[kMany - 1] = -1;
    MPI_Barrier(MPI_COMM_WORLD);
    if (g_rank == 1) {
        int error = MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        if (error == MPI_SUCCESS) error = MPI_Put(out.data(), words, MPI_INT64_T, 0, 0, words, MPI_INT64_T, win);
        if (error == MPI_SUCCESS) error = MPI_Win_flush(0, win);
        osct::expect(class_of(error) == expected, "the operation has not the expected class");
        if (others_work)
            osct::expect(MPI_Put(out.data(), 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, win) == MPI_SUCCESS,
                         "a small put failed");
        const int unlocked = MPI_Win_unlock(0, win);
        if (others_work) osct::expect(unlocked == MPI_SUCCESS, "the unlock failed");
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(win);
    if (g_rank == 0) osct::expect(base[0] == (others_work ? 1 : -1) && base[kMany - 1] == -1, "other data arrived");
    MPI_Barrier(MPI_COMM_WORLD);
    const int freed = MPI_Win_free(&win);
    if (others_work) osct::expect(freed == MPI_SUCCESS, "MPI_Win_free failed");
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &g_size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    const std::string wanted = argc > 1 ? argv[1] : "";
    if (wanted == "no_memory")
        one_fails(kMany, MPI_ERR_NO_MEM, true);
    else if (wanted == "descriptors")
        few_descriptors();
    else if (wanted == "insert")
        one_fails(1, MPI_ERR_OTHER, false);
    else
        all_kinds(wanted == "served" || wanted == "any" ? kServed
                  : wanted == "host"                    ? kHost
                                                        : kRefused,
                  wanted == "any");
    int failures = 0;
    MPI_Reduce(&g_failures, &failures, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (g_rank == 0) std::printf("%s: %d failures\n", failures == 0 ? "PASSED" : "FAILED", failures);
    std::fflush(stdout);
    MPI_Finalize();
    return g_failures == 0 ? 0 : 1;
}
