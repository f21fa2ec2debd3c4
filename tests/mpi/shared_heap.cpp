// Large allocations from shared memory (OSC_SHARE_HEAP, libosc_heap.so): what malloc and its family promise still
// holds, and a window over such memory is shared from the start, also while other threads store into it.
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <thread>
#include <vector>

#include "adopt.h"
#include "osc/osc.h"
#include "window_number.h"

#pragma weak osc_window_stat

OSCT_PROGRAM(MPI_THREAD_MULTIPLE, "MPI_Win_create", "MPI_Put", "MPI_Accumulate")

using adopt::is_shared;
using adopt::kEnough;

// A pool that takes its memory from malloc, while it holds its lock.
static std::atomic<bool> g_pool{false};
static std::mutex g_pool_lock;

[[gnu::noinline]] void* operator new(std::size_t bytes) {
    const std::unique_lock lock = g_pool ? std::unique_lock(g_pool_lock) : std::unique_lock<std::mutex>();
    void* const piece = std::malloc(g_pool ? std::max(bytes, 4 * kEnough) : bytes);
    if (piece == nullptr) throw std::bad_alloc();
    return piece;
}
[[gnu::noinline]] void operator delete(void* piece) noexcept {
    std::free(piece);
}
[[gnu::noinline]] void operator delete(void* piece, std::size_t /*bytes*/) noexcept {
    std::free(piece);
}

namespace {

constexpr std::size_t kPiece = 16 * kEnough;
constexpr std::size_t kHeap = std::size_t{64} << 20;  // OSC_SHARE_HEAP in tests/mpi/CMakeLists.txt

// The compiler knows no more about the memory than this program's other parts do.
template <class T>
T* unknown(T* piece) {
    asm volatile("" : "+r"(piece) : : "memory");
    return piece;
}

// Every rank adds its number to every element of its right neighbour.
void add_to_neighbour(long* elements, std::size_t count) {
    const adopt::Window window(elements, count * sizeof(long));
    const int to = (rank() + 1) % size();
    std::vector<long> added(count, rank() + 1);
    MPI_Win_lock_all(0, window.win);
    CHECK_OK(MPI_Accumulate(added.data(), static_cast<int>(count), MPI_LONG, to, 0, static_cast<int>(count), MPI_LONG,
                            MPI_SUM, window.win));
    MPI_Win_unlock_all(window.win);
    MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace

CASE(every_way_to_allocate_much_gives_shared_memory) {
    std::vector<void*> pieces = {std::malloc(kPiece),     std::calloc(kPiece / 8, 8),
                                 ::memalign(256, kPiece), std::aligned_alloc(1 << 16, kPiece),
                                 ::valloc(kPiece),        ::operator new(kPiece)};
    void* piece = nullptr;
    CHECK_EQ(::posix_memalign(&piece, std::size_t{1} << 21, kPiece), 0);
    CHECK_EQ(reinterpret_cast<std::uintptr_t>(piece) % (std::size_t{1} << 21), 0U);
    pieces.push_back(piece);
    CHECK_EQ(reinterpret_cast<std::uintptr_t>(pieces[3]) % (1 << 16), 0U);
    for (void* const each : pieces) {
        CHECK(is_shared(each));
        CHECK(is_shared(static_cast<char*>(each) + kPiece - 1));
        CHECK(::malloc_usable_size(each) >= kPiece);
    }
    for (std::size_t i = 0; i < kPiece; ++i)
        CHECK(static_cast<char*>(pieces[1])[i] == 0);
    ::operator delete(pieces[5]);
    pieces.erase(pieces.begin() + 5);
    for (void* const each : pieces)
        std::free(each);
    void* const small = unknown(std::malloc(100));
    CHECK(!is_shared(small));
    std::free(small);
}

CASE(wrong_arguments_fail_as_without_it) {
    void* piece = &piece;
    CHECK_EQ(::posix_memalign(&piece, 24, kPiece), EINVAL);
    CHECK(piece == &piece);
    volatile std::size_t much = ~std::size_t{0} / 2;
    CHECK(std::malloc(much) == nullptr);
    CHECK(std::calloc(much, 16) == nullptr);
    void* const large = std::malloc(kPiece);
    CHECK(std::realloc(unknown(large), much) == nullptr);
    std::free(unknown(large));
    std::free(nullptr);
}

CASE(pieces_grow_and_shrink_with_their_contents) {
    auto* piece = static_cast<long*>(std::malloc(1000));
    std::size_t count = 1000 / sizeof(long);
    std::iota(piece, piece + count, 0L);
    // Beyond the threshold, beside another piece, and back.
    std::vector<void*> others;
    for (const std::size_t bytes : {kEnough / 2, kEnough, 3 * kPiece, 5 * kPiece, kPiece, kEnough, std::size_t{1000}}) {
        piece = static_cast<long*>(std::realloc(piece, bytes));
        CHECK(piece != nullptr);
        const std::size_t kept = std::min(count, bytes / sizeof(long));
        for (std::size_t i = 0; i < kept; ++i)
            CHECK(piece[i] == static_cast<long>(i));
        count = bytes / sizeof(long);
        std::iota(piece, piece + count, 0L);
        CHECK_EQ(is_shared(piece), bytes >= kEnough);
        others.push_back(std::malloc(kEnough));
    }
    std::free(piece);
    for (void* const other : others)
        std::free(other);
}

CASE(a_full_heap_leaves_the_rest_to_the_c_library) {
    std::vector<void*> pieces;
    std::size_t shared = 0;
    for (std::size_t taken = 0; taken < 2 * kHeap; taken += 4 * kPiece) {
        pieces.push_back(std::malloc(4 * kPiece));
        CHECK(pieces.back() != nullptr);
        shared += is_shared(pieces.back()) ? 1 : 0;
    }
    CHECK(shared > 0 && shared < pieces.size());
    for (void* const piece : pieces)
        std::free(piece);
    void* const again = unknown(std::malloc(4 * kPiece));
    CHECK(is_shared(again));
    std::free(again);
}

// But for what OSC_DEBUG=reuse_mib lets libosc keep, which is nothing in this run.
CASE(freed_memory_returns_to_the_system) {
    const long long before = adopt::arena_bytes();
    auto* const piece = static_cast<char*>(unknown(std::malloc(kPiece)));
    std::memset(piece, 7, kPiece);
    CHECK(adopt::arena_bytes() >= before + static_cast<long long>(kPiece));
    std::free(piece);
    CHECK_EQ(adopt::arena_bytes(), before);
    auto* const next = static_cast<char*>(std::malloc(kPiece));
    CHECK(next == piece);
    for (std::size_t i = 0; i < kPiece; ++i)
        CHECK(next[i] == 0);
    std::free(next);
}

CASE(windows_are_shared_without_a_copy_beside_storing_threads) {
    constexpr std::size_t kCount = kPiece / sizeof(long);
    auto* const elements = static_cast<long*>(std::calloc(kCount, sizeof(long)));
    // The last quarter belongs to a thread that stores during the creation; none of its stores may be lost.
    std::atomic<bool> stop{false};
    std::atomic<long> stores{0};
    std::thread writer([&] {
        for (long value = 1; !stop; ++value) {
            for (std::size_t i = kCount - kCount / 4; i < kCount; ++i)
                std::atomic_ref<long>(elements[i]).store(value);
            stores = value;
        }
    });
    while (stores == 0)
        std::this_thread::yield();
    add_to_neighbour(elements, kCount - kCount / 4);
    stop = true;
    writer.join();
    const int left = (rank() + size() - 1) % size();
    for (std::size_t i = 0; i < kCount - kCount / 4; ++i)
        CHECK(elements[i] == left + 1);
    for (std::size_t i = kCount - kCount / 4; i < kCount; ++i)
        CHECK(elements[i] == stores);
    std::free(elements);
}

CASE(operations_reach_it_by_load_and_store) {
    auto* const elements = static_cast<long*>(std::calloc(kPiece, 1));
    CHECK(is_shared(elements));
    {
        const adopt::Window window(elements, kPiece);
        const int to = (rank() + 1) % size();
        const long value = rank() + 41;
        MPI_Win_lock_all(0, window.win);
        CHECK_OK(MPI_Put(&value, 1, MPI_LONG, to, 0, 1, MPI_LONG, window.win));
        MPI_Win_flush(to, window.win);
        MPI_Win_unlock_all(window.win);
        MPI_Barrier(MPI_COMM_WORLD);
        CHECK_EQ(elements[0], (rank() + size() - 1) % size() + 41L);
        unsigned long long direct = 0;
        CHECK_EQ(osc_window_stat(number_of(window.win), "put.load_store.operations", &direct), 0);
        CHECK_EQ(direct, 1ULL);
    }
    std::free(elements);
}

CASE(operator_new_may_take_its_memory_from_malloc) {
    g_pool = true;
    const auto use = [] {
        for (int turn = 0; turn < 200; ++turn) {
            std::vector<std::unique_ptr<int>> numbers;
            for (int i = 0; i < 8; ++i)
                numbers.push_back(std::make_unique<int>(i));
            void* const piece = unknown(std::malloc(kPiece));
            CHECK(piece != nullptr);
            std::free(piece);
        }
    };
    std::thread other(use);
    use();
    other.join();
    g_pool = false;
}

CASE(a_child_has_its_own_copy) {
    auto* const piece = static_cast<char*>(std::malloc(kPiece));
    std::memset(piece, 1, kPiece);
    const pid_t child = ::fork();
    if (child == 0) {
        bool right = piece[0] == 1 && piece[kPiece - 1] == 1;
        std::memset(piece, 2, kPiece);
        std::free(piece);
        char* const other = unknown(static_cast<char*>(std::malloc(kPiece)));
        right = right && other != nullptr && other[kPiece / 2] == 0;
        std::memset(other, 3, kPiece);
        ::_exit(right ? 0 : 1);
    }
    int status = 0;
    CHECK_EQ(::waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    for (std::size_t i = 0; i < kPiece; ++i)
        CHECK(piece[i] == 1);
    std::free(piece);
}
