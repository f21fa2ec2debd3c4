// Children of fork that use the memory functions of MPI, as destructors do in a child that exits: what a child
// allocates and frees leaves its parent's memory, which the child inherits, as it is.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "harness.h"

OSCT_PROGRAM(MPI_THREAD_MULTIPLE, "MPI_Alloc_mem", "MPI_Free_mem", "MPI_Win_allocate", "MPI_Win_free", "MPI_Put",
             "MPI_Win_fence")

namespace {

constexpr unsigned kPatience = 10;  // seconds
constexpr std::size_t kMiB = std::size_t{1} << 20;
// In the pool, in mappings of their own, and more than libosc keeps of freed memory.
constexpr std::array<std::size_t, 6> kSizes = {8, 4096, 100000, 3 * kMiB, 10 * kMiB, 80 * kMiB};

struct Piece {
    unsigned char* base = nullptr;
    std::size_t bytes = 0;
};

// The first and the last bytes tell as much as all.
constexpr std::size_t kMarked = 4096;

std::vector<Piece> allocate(unsigned char mark) {
    std::vector<Piece> pieces;
    for (const std::size_t bytes : kSizes) {
        Piece piece{nullptr, bytes};
        if (MPI_Alloc_mem(static_cast<MPI_Aint>(bytes), MPI_INFO_NULL, &piece.base) != MPI_SUCCESS) continue;
        std::memset(piece.base, mark, std::min(bytes, kMarked));
        std::memset(piece.base + bytes - std::min(bytes, kMarked), mark, std::min(bytes, kMarked));
        pieces.push_back(piece);
    }
    return pieces;
}

bool is_marked(const std::vector<Piece>& pieces, unsigned char mark) {
    for (const Piece& piece : pieces)
        for (std::size_t i = 0; i < std::min(piece.bytes, kMarked); ++i)
            if (piece.base[i] != mark || piece.base[piece.bytes - 1 - i] != mark) return false;
    return pieces.size() == kSizes.size();
}

bool release(const std::vector<Piece>& pieces) {
    bool good = true;
    for (const Piece& piece : pieces)
        good = MPI_Free_mem(piece.base) == MPI_SUCCESS && good;
    return good;
}

// The status of a child that runs `body` and ends with what it returns.
template <class Body>
int status_in_child(Body&& body) {
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(kPatience);
        ::_exit(body());
    }
    int status = -1;
    CHECK(child > 0 && ::waitpid(child, &status, 0) == child);
    return status;
}

// A window whose memory tells whether another process has changed it.
class Marked {
  public:
    Marked() {
        CHECK_OK(MPI_Win_allocate(4 * kMiB, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &base_, &win_));
        for (std::size_t i = 0; i < kWords; ++i)
            base_[i] = static_cast<long>(i);
    }
    ~Marked() {
        const long value = rank();
        CHECK_OK(MPI_Win_fence(0, win_));
        CHECK_OK(MPI_Put(&value, 1, MPI_LONG, right(), 0, 1, MPI_LONG, win_));
        CHECK_OK(MPI_Win_fence(0, win_));
        CHECK_EQ(base_[0], left());
        CHECK_ALL(base_ + 1, kWords - 1, [](std::size_t i) { return i + 1; });
        CHECK_OK(MPI_Win_free(&win_));
    }
    Marked(const Marked&) = delete;
    Marked& operator=(const Marked&) = delete;

  private:
    static constexpr std::size_t kWords = 4 * kMiB / sizeof(long);
    long* base_ = nullptr;
    MPI_Win win_ = MPI_WIN_NULL;
};

// Frees memory when the process that has it exits.
struct Holder {
    std::vector<Piece> pieces;
    ~Holder() { release(pieces); }
};
Holder g_holder;

}  // namespace

CASE(a_child_frees_what_it_inherits) {
    const Marked window;
    const std::vector<Piece> pieces = allocate(1);
    const long long before = osct::counter("bytes.shared_in_use");
    CHECK_EQ(status_in_child([&] { return release(pieces) ? 0 : 1; }), 0);
    CHECK(is_marked(pieces, 1));
    CHECK_EQ(osct::counter("bytes.shared_in_use"), before);
    CHECK(release(pieces));
}

CASE(a_child_allocates) {
    const Marked window;
    const std::vector<Piece> first = allocate(2);
    CHECK_EQ(status_in_child([&] {
                 const std::vector<Piece> own = allocate(3);
                 const std::vector<Piece> more = allocate(4);
                 return is_marked(own, 3) && is_marked(more, 4) && is_marked(first, 2) && release(own) && release(more)
                            ? 0
                            : 1;
             }),
             0);
    const std::vector<Piece> second = allocate(5);
    CHECK(is_marked(first, 2) && is_marked(second, 5));
    CHECK(release(first) && release(second));
}

// While the child uses its memory the parent goes on.
CASE(both_allocate_at_once) {
    const Marked window;
    int to_parent[2];
    int to_child[2];
    CHECK(::pipe(to_parent) == 0 && ::pipe(to_child) == 0);
    std::fflush(nullptr);
    const pid_t child = ::fork();
    char byte = 0;
    if (child == 0) {
        ::alarm(kPatience);
        const std::vector<Piece> own = allocate(6);
        bool good = ::write(to_parent[1], "c", 1) == 1 && ::read(to_child[0], &byte, 1) == 1;
        good = good && is_marked(own, 6) && release(own);
        ::_exit(good ? 0 : 1);
    }
    CHECK(::read(to_parent[0], &byte, 1) == 1);
    const std::vector<Piece> pieces = allocate(7);
    CHECK(::write(to_child[1], "p", 1) == 1);
    int status = -1;
    CHECK(::waitpid(child, &status, 0) == child);
    CHECK_EQ(status, 0);
    CHECK(is_marked(pieces, 7));
    CHECK(release(pieces));
    for (const int end : {to_parent[0], to_parent[1], to_child[0], to_child[1]})
        ::close(end);
}

CASE(a_child_of_a_child) {
    const Marked window;
    const std::vector<Piece> pieces = allocate(8);
    CHECK_EQ(status_in_child([&] {
                 const std::vector<Piece> own = allocate(9);
                 const bool good = status_in_child([&] { return release(pieces) && release(own) ? 0 : 1; }) == 0;
                 return good && is_marked(own, 9) && is_marked(pieces, 8) && release(own) ? 0 : 1;
             }),
             0);
    CHECK(is_marked(pieces, 8));
    CHECK(release(pieces));
}

CASE(destructors_free_in_a_child_that_exits) {
    const Marked window;
    g_holder.pieces = allocate(10);
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
        ::alarm(kPatience);
        std::exit(0);
    }
    int status = -1;
    CHECK(::waitpid(child, &status, 0) == child);
    CHECK_EQ(status, 0);
    CHECK(is_marked(g_holder.pieces, 10));
    CHECK(release(g_holder.pieces));
    g_holder.pieces.clear();
}

#ifndef __SANITIZE_ADDRESS__  // GCC 12's runtime library leaves its allocator's locks to a thread that the child lacks
// A thread of the parent, which the child lacks, may be inside the same functions.
CASE(a_child_of_a_busy_parent) {
    HOST_CANNOT("the host's lock stays with a thread that the child lacks");
    const Marked window;
    std::vector<Piece> pieces = allocate(11);
    std::atomic<bool> ends{false};
    std::thread busy([&] {
        while (!ends.load()) {
            void* memory = nullptr;
            MPI_Alloc_mem(64, MPI_INFO_NULL, &memory);
            MPI_Free_mem(memory);
        }
    });
    int status = 0;
    for (int i = 0; i < 50 && status == 0; ++i)
        status = status_in_child([&] {
            const std::vector<Piece> own = allocate(12);
            return is_marked(own, 12) && release(own) && release(pieces) ? 0 : 1;
        });
    CHECK_EQ(status, 0);
    ends.store(true);
    busy.join();
    CHECK(is_marked(pieces, 11));
    CHECK(release(pieces));
}
#endif
