// Ranks that do not see each other's processes: each in a PID namespace of its own (every one of them has the same
// number there, so that a number leads to a wrong process), or the first one outside. libosc serves all flavours all
// the same, through arenas that the processes have passed to each other. Run by confined.py.
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

#include "../mpi/harness.h"
#include "../mpi/windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Put", "MPI_Get", "MPI_Accumulate", "MPI_Fetch_and_op", "MPI_Win_fence",
             "MPI_Win_lock", "MPI_Win_unlock", "MPI_Win_lock_all", "MPI_Win_unlock_all", "MPI_Win_flush",
             "MPI_Win_post", "MPI_Win_start", "MPI_Win_complete", "MPI_Win_wait", "MPI_Win_create", "MPI_Win_allocate",
             "MPI_Win_allocate_shared", "MPI_Win_create_dynamic", "MPI_Win_attach", "MPI_Win_detach",
             "MPI_Win_shared_query", "MPI_Win_free", "MPI_Alloc_mem", "MPI_Free_mem")

namespace {

template <class T>
std::vector<T> gather(T mine, MPI_Comm comm = MPI_COMM_WORLD) {
    int n = 0;
    MPI_Comm_size(comm, &n);
    std::vector<T> all(static_cast<std::size_t>(n));
    MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, comm);
    return all;
}

// Whether no two ranks have the same of something that a link of the system names.
bool all_differ(const char* link) {
    std::array<char, 64> mine{};
    CHECK(::readlink(link, mine.data(), mine.size() - 1) > 0);
    std::vector<std::array<char, 64>> all = gather(mine);
    std::sort(all.begin(), all.end());
    return std::adjacent_find(all.begin(), all.end()) == all.end();
}

}  // namespace

CASE(all_processes_have_other_namespaces) {
    CHECK(all_differ("/proc/self/ns/pid"));
    // A peer's PID refers to another process here, or to none.
    std::uint64_t mine = static_cast<std::uint64_t>(rank()) + 1;
    const std::vector<pid_t> numbers = gather(::getpid());
    const std::vector<std::uint64_t*> places = gather(&mine);
    const auto other = static_cast<std::size_t>(right());
    std::uint64_t seen = 0;
    iovec here{&seen, sizeof seen};
    iovec there{places[other], sizeof seen};
    const bool read = ::process_vm_readv(numbers[other], &here, 1, &there, 1, 0) == sizeof seen;
    CHECK(!read || seen != other + 1);
    MPI_Barrier(MPI_COMM_WORLD);
}

CASE(put_get_and_fence) {
    constexpr std::size_t kWords = 3000;
    for (const WindowKind kind : kAllWindowKinds) {
        const Window window(kind, kWords * 8 * static_cast<std::size_t>(size()));
        std::vector<std::int64_t> out(kWords), in(kWords);
        MPI_Win_fence(0, window.handle());
        for (int target = 0; target < size(); ++target) {
            std::iota(out.begin(), out.end(), 1000 * rank() + 100000 * target);
            CHECK_OK(MPI_Put(out.data(), kWords, MPI_INT64_T, target,
                             window.at(target, kWords * 8 * static_cast<std::size_t>(rank())), kWords, MPI_INT64_T,
                             window.handle()));
        }
        MPI_Win_fence(0, window.handle());
        for (int origin = 0; origin < size(); ++origin)
            CHECK_ALL(window.base<std::int64_t>() + kWords * static_cast<std::size_t>(origin), kWords,
                      [&](std::size_t i) { return 1000 * origin + 100000 * rank() + static_cast<std::int64_t>(i); });
        const int target = right();
        CHECK_OK(MPI_Get(in.data(), kWords, MPI_INT64_T, target,
                         window.at(target, kWords * 8 * static_cast<std::size_t>(rank())), kWords, MPI_INT64_T,
                         window.handle()));
        MPI_Win_fence(MPI_MODE_NOSUCCEED, window.handle());
        CHECK_ALL(in.data(), kWords,
                  [&](std::size_t i) { return 1000 * rank() + 100000 * target + static_cast<std::int64_t>(i); });
    }
}

// Pieces above 2 MiB are mapped one by one, by the descriptor that was passed.
CASE(large_pieces) {
    const std::size_t bytes = std::size_t{5} << 20;
    for (const WindowKind kind : kAllWindowKinds) {
        const Window window(kind, bytes);
        const int target = right();
        const int origin = left();
        std::vector<std::uint64_t> out(bytes / 8);
        std::iota(out.begin(), out.end(), static_cast<std::uint64_t>(rank()) << 32);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window.handle());
        CHECK_OK(MPI_Put(out.data(), static_cast<int>(bytes), MPI_BYTE, target, window.at(target, 0),
                         static_cast<int>(bytes), MPI_BYTE, window.handle()));
        MPI_Win_unlock(target, window.handle());
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_ALL(window.base<std::uint64_t>(), bytes / 8,
                  [&](std::size_t i) { return (static_cast<std::uint64_t>(origin) << 32) + i; });
    }
}

CASE(contended_locks_exclude) {
    const int each = osct::full() ? 3000 : 150;
    for (const WindowKind kind : kAllWindowKinds) {
        const Window window(kind, 64);
        const MPI_Aint at = window.at(0, 8);
        for (int i = 0; i < each; ++i) {
            std::int64_t value = 0;
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.handle());
            MPI_Get(&value, 1, MPI_INT64_T, 0, at, 1, MPI_INT64_T, window.handle());
            MPI_Win_flush(0, window.handle());
            ++value;
            MPI_Put(&value, 1, MPI_INT64_T, 0, at, 1, MPI_INT64_T, window.handle());
            MPI_Win_unlock(0, window.handle());
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank() == 0) CHECK_EQ(window.base<std::int64_t>()[1], static_cast<std::int64_t>(each) * size());
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

CASE(atomics_add_up) {
    const int each = osct::full() ? 3000 : 150;
    for (const WindowKind kind : kAllWindowKinds) {
        const Window window(kind, 64);
        const std::int64_t one = 1;
        std::int64_t old = 0;
        MPI_Win_lock_all(0, window.handle());
        for (int i = 0; i < each; ++i) {
            MPI_Fetch_and_op(&one, &old, MPI_INT64_T, 0, window.at(0, 0), MPI_SUM, window.handle());
            MPI_Accumulate(&one, 1, MPI_INT64_T, 0, window.at(0, 0), 1, MPI_INT64_T, MPI_SUM, window.handle());
            MPI_Win_flush(0, window.handle());
        }
        MPI_Win_unlock_all(window.handle());
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank() == 0) CHECK_EQ(window.base<std::int64_t>()[0], 2L * each * size());
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

CASE(post_start_complete_wait) {
    for (const WindowKind kind : kAllWindowKinds) {
        const Window window(kind, 64);
        const int target = right();
        const osct::Group next(target), previous(left());
        for (std::int64_t round = 1; round <= 50; ++round) {
            const std::int64_t value = 1000 * rank() + round;
            MPI_Win_post(previous, 0, window.handle());
            MPI_Win_start(next, 0, window.handle());
            CHECK_OK(MPI_Put(&value, 1, MPI_INT64_T, target, window.at(target, 16), 1, MPI_INT64_T, window.handle()));
            MPI_Win_complete(window.handle());
            MPI_Win_wait(window.handle());
            CHECK_EQ(window.base<std::int64_t>()[2], 1000 * left() + round);
        }
    }
}

CASE(shared_windows_give_pointers) {
    const Window window(WindowKind::Shared, 4096);
    window.base<int>()[5] = 70 + rank();
    MPI_Barrier(MPI_COMM_WORLD);
    for (int target = 0; target < size(); ++target) {
        MPI_Aint bytes = 0;
        int unit = 0;
        int* there = nullptr;
        CHECK_OK(MPI_Win_shared_query(window.handle(), target, &bytes, &unit, static_cast<void*>(&there)));
        CHECK_EQ(there[5], 70 + target);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

// The arenas that peers have passed to a process serve all its communicators. They cost one descriptor for each peer,
// which is closed after the last communicator is freed.
CASE(more_communicators_cost_no_more_descriptors) {
    HOST_CANNOT("it keeps descriptors as it likes");
    const Window first(WindowKind::Allocate, 64);
    const int before = osct::open_descriptors();
    for (int i = 0; i < 8; ++i) {
        MPI_Comm half = MPI_COMM_NULL;
        MPI_Comm_split(MPI_COMM_WORLD, rank() % 2, -rank(), &half);
        {
            const Window window(WindowKind::Allocate, 64, half);
            const std::int64_t value = 1 + rank();
            MPI_Win_fence(0, window.handle());
            CHECK_OK(MPI_Put(&value, 1, MPI_INT64_T, 0, 0, 1, MPI_INT64_T, window.handle()));
            MPI_Win_fence(0, window.handle());
        }
        MPI_Comm_free(&half);
    }
    CHECK(osct::open_descriptors() <= before);
}

// Processes in different network namespaces cannot pass arenas either. All get an error soon.
CASE(a_team_without_a_path_is_refused_on_all_ranks) {
    HOST_CANNOT("it serves this");
    SKIP_IF(!all_differ("/proc/self/ns/net"));
    const osct::WithoutObject without_object;
    for (int i = 0; i < 3; ++i) {
        MPI_Win win = MPI_WIN_NULL;
        void* base = nullptr;
        const double begin = osct::now();
        CHECK_CLASS(MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, static_cast<void*>(&base), &win),
                    MPI_ERR_OTHER);
        CHECK(osct::now() - begin < 10);
    }
}
