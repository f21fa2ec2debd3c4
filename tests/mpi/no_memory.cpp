// Memory that cannot be had, on one rank or on all, and memory that comes back when its window goes.
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "harness.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_allocate", "MPI_Win_allocate_shared", "MPI_Win_create", "MPI_Alloc_mem",
             "MPI_Win_free")

namespace {

constexpr MPI_Aint kTooMuch = MPI_Aint{1} << 60;

// The next window of the same communicator works.
void use(MPI_Comm comm) {
    long* base = nullptr;
    MPI_Win win;
    CHECK_OK(MPI_Win_allocate(64, 8, MPI_INFO_NULL, comm, &base, &win));
    const long out = rank() + 3;
    MPI_Win_fence(0, win);
    CHECK_OK(MPI_Put(&out, 1, MPI_LONG, right(), 0, 1, MPI_LONG, win));
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    CHECK_EQ(base[0], left() + 3L);
    CHECK_OK(MPI_Win_free(&win));
}

// Bytes that this process's arena has pages for: its file is the one named memfd:osc.
long long backed() {
    long long bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code error;
        struct stat file = {};
        if (std::filesystem::read_symlink(entry.path(), error).string().find("memfd:osc ") != std::string::npos &&
            ::stat(entry.path().c_str(), &file) == 0)
            bytes += file.st_blocks * 512LL;
    }
    return bytes;
}

// The arenas that this process has mapped, its own and those of peers, in bytes.
struct Mapped {
    std::size_t accessible = 0;
    std::size_t dumped = 0;  // core files have it
    bool has_base = false;   // `base` is among it
};

Mapped mapped(const void* base) {
    Mapped found;
    std::ifstream maps("/proc/self/smaps");
    std::size_t first = 0, end = 0;
    bool arena = false;
    for (std::string line; std::getline(maps, line);) {
        char rights[5] = "";
        std::size_t from = 0, to = 0;  // other lines may begin with a hexadecimal digit
        if (std::sscanf(line.c_str(), "%zx-%zx %4s", &from, &to, rights) == 3) {
            first = from;
            end = to;
            arena = line.find("/memfd:osc ") != std::string::npos;
            if (arena && rights[0] == 'r') found.accessible += end - first;
        } else if (arena && line.rfind("VmFlags:", 0) == 0 && line.find(" dd") == std::string::npos) {
            found.dumped += end - first;
            const auto at = reinterpret_cast<std::size_t>(base);
            found.has_base = found.has_base || (at >= first && at < end);
        }
    }
    return found;
}

// A limit of this process while an object exists.
class Limit {
  public:
    Limit(int what, std::size_t most) : what_(what) {
        CHECK(::getrlimit(what_, &before_) == 0);
        rlimit now = before_;
        now.rlim_cur = std::min<rlim_t>(most, before_.rlim_max);
        CHECK(::setrlimit(what_, &now) == 0);
    }
    ~Limit() { ::setrlimit(what_, &before_); }
    Limit(const Limit&) = delete;
    Limit& operator=(const Limit&) = delete;

  private:
    int what_;
    rlimit before_{};
};

std::size_t address_space() {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    return pages * 4096;
}

bool nodes_made_up() {
    return std::atoi(osct::debug_setting("fake_nodes").c_str()) > 1;
}

}  // namespace

// Before the first window of the process: rank 1 cannot map the arena of rank 0. What is left suffices for the host.
CASE(addresses_run_out) {
    SKIP_IF(!osct::served_by_osc() || size() < 2 || nodes_made_up());
    const ReturningComm comm;
    void* block = nullptr;
    CHECK_OK(MPI_Alloc_mem(64, MPI_INFO_NULL, &block));
    {
        const Limit limit(RLIMIT_AS, rank() == 1 ? address_space() + (std::size_t{512} << 20) : RLIM_INFINITY);
        MPI_Win win = MPI_WIN_NULL;
        long* base = nullptr;
        CHECK_CLASS(MPI_Win_allocate(64, 8, MPI_INFO_NULL, comm, &base, &win), MPI_ERR_NO_MEM);
    }
    use(comm);
    CHECK_OK(MPI_Free_mem(block));
}

// One node has no memory for a window's control data. The other one keeps none of its own.
CASE(control_data_of_one_node) {
    SKIP_IF(!nodes_made_up() || size() < 2);
    const ReturningComm comm;
    use(comm);
    MPI_Barrier(comm);
    std::vector<void*> filling;
    const bool poor = !osct::same_node(0);
    struct stat file = {};
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code error;
        if (std::filesystem::read_symlink(entry.path(), error).string().find("memfd:osc ") != std::string::npos)
            ::stat(entry.path().c_str(), &file);
    }
    const Limit limit(RLIMIT_FSIZE, poor ? static_cast<std::size_t>(file.st_size) : RLIM_INFINITY);
    for (const std::size_t bytes : {4096, 64})
        for (long long before = -1; poor && before != osct::counter("bytes.shared_in_use");) {
            before = osct::counter("bytes.shared_in_use");
            filling.push_back(nullptr);
            CHECK_OK(MPI_Alloc_mem(static_cast<MPI_Aint>(bytes), MPI_INFO_NULL, &filling.back()));
        }
    const long long before = osct::counter("bytes.shared_in_use");
    for (int i = 0; i < 10; ++i) {
        long* base = nullptr;
        MPI_Win win = MPI_WIN_NULL;
        CHECK_CLASS(MPI_Win_allocate(64, 8, MPI_INFO_NULL, comm, &base, &win), MPI_ERR_NO_MEM);
    }
    MPI_Barrier(comm);
    CHECK_EQ(osct::counter("bytes.shared_in_use"), before);
    for (void* const piece : filling)
        CHECK_OK(MPI_Free_mem(piece));
    MPI_Barrier(comm);
    use(comm);
}

// A tool that reads all accessible memory, such as a checker of leaks, and core files meet what is in use.
CASE(reserved_addresses_are_left_alone) {
    SKIP_IF(!osct::served_by_osc());
    constexpr std::size_t kRoom = std::size_t{8} << 20;  // for each process: control data and steps of growth
    char *small = nullptr, *large = nullptr, *freed = nullptr;
    constexpr MPI_Aint kLarge = 16 << 20;
    MPI_Win wins[2];
    CHECK_OK(MPI_Win_allocate(64, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &small, &wins[0]));
    CHECK_OK(MPI_Win_allocate(kLarge, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &large, &wins[1]));
    CHECK_OK(MPI_Alloc_mem(MPI_Aint{128} << 20, MPI_INFO_NULL, &freed));  // more than libosc keeps
    CHECK_OK(MPI_Free_mem(freed));
    for (MPI_Win win : wins) {
        MPI_Win_lock_all(0, win);
        for (int peer = 0; peer < size(); ++peer)
            CHECK_OK(MPI_Accumulate(&peer, 1, MPI_INT, peer, 0, 1, MPI_INT, MPI_MAX, win));
        MPI_Win_unlock_all(win);
    }
    const Mapped found = mapped(small);
    const auto all = static_cast<std::size_t>(size());
    CHECK(found.accessible >= static_cast<std::size_t>(kLarge));
    CHECK(found.dumped < static_cast<std::size_t>(kLarge) + kRoom);  // nothing of peers, nor of freed memory
    CHECK(found.accessible < (kLarge + kRoom) * all + (std::size_t{128} << 20));
    CHECK(found.has_base && mapped(large).has_base);
    for (MPI_Win& win : wins)
        CHECK_OK(MPI_Win_free(&win));
}

// One rank requests too much memory; the creation fails on all ranks with the same class.
CASE(windows_too_large_on_one_rank) {
    const ReturningComm comm;
    void* base = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    for (int greedy = 0; greedy < size(); ++greedy) {
        const MPI_Aint bytes = rank() == greedy ? kTooMuch : 64;
        CHECK_CLASS(MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, comm, &base, &win), MPI_ERR_NO_MEM);
        CHECK_CLASS(MPI_Win_allocate_c(bytes, 1, MPI_INFO_NULL, comm, &base, &win), MPI_ERR_NO_MEM);
        CHECK_CLASS(MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, comm, &base, &win), MPI_ERR_NO_MEM);
        use(comm);
    }
}

CASE(windows_too_large_on_all_ranks) {
    const ReturningComm comm;
    void* base = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    const Info noncontiguous{{"alloc_shared_noncontig", "true"}};
    // Of four ranks, 2^62 bytes each are 0 in 64 bits.
    for (const MPI_Aint bytes : {kTooMuch, MPI_Aint{1} << 62, std::numeric_limits<MPI_Aint>::max()}) {
        CHECK_CLASS(MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, comm, &base, &win), MPI_ERR_NO_MEM);
        CHECK_CLASS(MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, comm, &base, &win), MPI_ERR_NO_MEM);
        CHECK_CLASS(MPI_Win_allocate_shared(bytes, 1, noncontiguous, comm, &base, &win), MPI_ERR_NO_MEM);
    }
    use(comm);
}

CASE(blocks_too_large) {
    const osct::WithoutObject without_object;
    for (const MPI_Aint bytes : {kTooMuch, std::numeric_limits<MPI_Aint>::max()}) {
        void* block = nullptr;
        CHECK_CLASS(MPI_Alloc_mem(bytes, MPI_INFO_NULL, &block), MPI_ERR_NO_MEM);
    }
    long* block = nullptr;
    CHECK_OK(MPI_Alloc_mem(64, MPI_INFO_NULL, &block));
    block[7] = 1;
    CHECK_OK(MPI_Free_mem(block));
}

// A window's own memory goes back with it; memory that the user gave stays the user's.
CASE(ownership_of_the_memory) {
    constexpr MPI_Aint kBytes = 1 << 20;
    std::vector<char> own(kBytes, 'o');
    char* block = nullptr;
    CHECK_OK(MPI_Alloc_mem(kBytes, MPI_INFO_NULL, &block));
    std::fill_n(block, kBytes, 'b');
    use(MPI_COMM_WORLD);
    // What a communicator's first windows leave, of either kind, is not theirs.
    char* first = nullptr;
    MPI_Win first_win;
    CHECK_OK(MPI_Win_allocate_shared(1, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &first, &first_win));
    CHECK_OK(MPI_Win_free(&first_win));
    MPI_Win_create(own.data(), kBytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &first_win);
    CHECK_OK(MPI_Win_free(&first_win));
    MPI_Barrier(MPI_COMM_WORLD);
    const long long before = osct::counter("bytes.shared_in_use");
    for (int round = 0; round < 3; ++round) {
        char *allocated = nullptr, *shared = nullptr;
        MPI_Win wins[4];
        MPI_Win_allocate(kBytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &allocated, &wins[0]);
        MPI_Win_allocate_shared(kBytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &shared, &wins[1]);
        MPI_Win_create(own.data(), kBytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &wins[2]);
        MPI_Win_create(block, kBytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &wins[3]);
        CHECK(osct::counter("bytes.shared_in_use") >= before + kBytes);
        for (MPI_Win& win : wins)
            CHECK_OK(MPI_Win_free(&win));
        CHECK_EQ(osct::counter("bytes.shared_in_use"), before);
        CHECK_ALL(own.data(), own.size(), [](std::size_t) { return 'o'; });
        CHECK_ALL(block, static_cast<std::size_t>(kBytes), [](std::size_t) { return 'b'; });
    }
    CHECK_OK(MPI_Free_mem(block));
}

// Pages come at the first touch, by the owner or by a peer.
CASE(untouched_memory_has_no_pages) {
    SKIP_IF(!osct::served_by_osc());
    constexpr MPI_Aint kBytes = MPI_Aint{1} << 30;
    use(MPI_COMM_WORLD);
    const long long before = backed();
    CHECK(before > 0);
    char *block = nullptr, *allocated = nullptr, *shared = nullptr;
    MPI_Win wins[2];
    CHECK_OK(MPI_Alloc_mem(kBytes, MPI_INFO_NULL, &block));
    CHECK_OK(MPI_Win_allocate(kBytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &allocated, &wins[0]));
    CHECK_OK(MPI_Win_allocate_shared(kBytes / size(), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &shared, &wins[1]));
    CHECK(backed() - before < 8 << 20);
    block[kBytes - 1] = 1;
    shared[0] = 1;
    const long out = rank() + 1;
    long in = -1;
    MPI_Win_fence(0, wins[0]);
    CHECK_OK(MPI_Get(&in, 1, MPI_LONG, right(), 8, 1, MPI_LONG, wins[0]));
    MPI_Win_fence(0, wins[0]);
    CHECK_EQ(in, 0L);
    CHECK_OK(MPI_Put(&out, 1, MPI_LONG, right(), kBytes - 8, 1, MPI_LONG, wins[0]));
    MPI_Win_fence(0, wins[0]);
    long got = 0;
    std::memcpy(&got, allocated + kBytes - 8, sizeof got);
    CHECK_EQ(got, left() + 1L);
    for (MPI_Win& win : wins)
        CHECK_OK(MPI_Win_free(&win));
    CHECK_OK(MPI_Free_mem(block));
    CHECK(backed() - before < 8 << 20);
}
