// Puts and gets whose memory goes and returns at the same address with other pages: as an origin's buffer, as a result
// buffer, as an attached region and as a window's memory. A registration that outlives its pages moves bytes of earlier
// buffers. Every case compares every byte and says how many are wrong.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "memory_ways.h"
#include "partner_regions.h"

OSCT_PROGRAM(MPI_THREAD_MULTIPLE, "MPI_Win_create_dynamic", "MPI_Win_attach", "MPI_Win_detach", "MPI_Put", "MPI_Get",
             "MPI_Win_flush")

using namespace osct;
using rdma::Way;

namespace {

constexpr std::size_t kSizes[] = {100000, 64, 4096, 8192 + 24, 100000};

// Memory that a round takes, with its bytes at an offset as in a program's structure.
class Taken {
  public:
    Taken(const Way& way, std::size_t bytes) : way_(way), bytes_(bytes), memory_(way.take(bytes)) {}
    ~Taken() {
        if (memory_ != nullptr) way_.leave(memory_, bytes_);
    }
    Taken(const Taken&) = delete;
    Taken& operator=(const Taken&) = delete;

    char* data() const { return memory_; }

  private:
    const Way& way_;
    const std::size_t bytes_;
    char* const memory_;
};

char byte_of(int seed, std::size_t at) {
    return static_cast<char>(static_cast<std::size_t>(seed) * 37 + at * 5 + at / 253);
}

void fill(char* memory, std::size_t bytes, int seed) {
    for (std::size_t i = 0; i < bytes; ++i)
        memory[i] = byte_of(seed, i);
}

long differing(const char* memory, std::size_t bytes, int seed) {
    long wrong = 0;
    for (std::size_t i = 0; i < bytes; ++i)
        wrong += memory[i] != byte_of(seed, i) ? 1 : 0;
    return wrong;
}

// Wrong bytes by the memory's role, and how often the memory came back to an address that it had in the role before.
struct Outcome {
    long put = 0;
    long got = 0;
    long region = 0;
    long window = 0;
    int returned = 0;
    int refused = 0;
};

// The communication of one thread: a window with steady memory, a dynamic window, and the partner's thread.
class Lane {
  public:
    Lane() : steady_(kSizes[0]) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
        MPI_Win_allocate(static_cast<MPI_Aint>(kSizes[0]), 1, MPI_INFO_NULL, comm_, &base_, &win_);
        MPI_Win_create_dynamic(MPI_INFO_NULL, comm_, &dynamic_);
        MPI_Win_lock_all(0, win_);
        MPI_Win_lock_all(0, dynamic_);
    }
    ~Lane() {
        MPI_Win_unlock_all(dynamic_);
        MPI_Win_unlock_all(win_);
        MPI_Win_free(&dynamic_);
        MPI_Win_free(&win_);
        MPI_Comm_free(&comm_);
    }
    Lane(const Lane&) = delete;
    Lane& operator=(const Lane&) = delete;

    Outcome run(const Way& way, int rounds, bool windows) {
        Outcome all;
        for (int round = 0; round < rounds; ++round)
            for (const std::size_t bytes : kSizes) {
                put_from(way, bytes, all);
                get_into(way, bytes, all);
                attach(way, bytes, all);
            }
        // Creation is slow: the largest size only.
        for (int round = 0; windows && round < 3; ++round)
            create(way, kSizes[0], all);
        return all;
    }

  private:
    // Not by MPI_Barrier: it would hold the host's lock while it polls and starve the other thread.
    void meet() {
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Ibarrier(comm_, &request);
        for (int done = 0; done == 0; std::this_thread::yield())
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    }

    MPI_Aint exchange(MPI_Aint mine) {
        MPI_Aint theirs = 0;
        MPI_Request both[2];
        MPI_Irecv(&theirs, 1, MPI_AINT, partner(), 1, comm_, &both[0]);
        MPI_Isend(&mine, 1, MPI_AINT, partner(), 1, comm_, &both[1]);
        for (int done = 0; done == 0; std::this_thread::yield())
            MPI_Testall(2, both, &done, MPI_STATUSES_IGNORE);
        return theirs;
    }

    bool usable(const Taken& taken, char*& last, Outcome& all) {
        if (taken.data() == nullptr) {
            ++all.refused;
            return false;
        }
        all.returned += taken.data() == last ? 1 : 0;
        last = taken.data();
        return true;
    }

    void transfer(bool put, char* memory, std::size_t bytes, MPI_Aint there, MPI_Win win) {
        const int count = static_cast<int>(bytes);
        if (put)
            MPI_Put(memory, count, MPI_CHAR, partner(), there, count, MPI_CHAR, win);
        else
            MPI_Get(memory, count, MPI_CHAR, partner(), there, count, MPI_CHAR, win);
        MPI_Win_flush(partner(), win);
    }

    // The memory is the origin's buffer of a put; steady memory shows what arrived.
    void put_from(const Way& way, std::size_t bytes, Outcome& all) {
        const Taken taken(way, bytes);
        if (!usable(taken, last_put_, all)) return;
        fill(taken.data(), bytes, ++seed_);
        transfer(true, taken.data(), bytes, 0, win_);
        std::fill(steady_.begin(), steady_.end(), '?');
        transfer(false, steady_.data(), bytes, 0, win_);
        all.put += differing(steady_.data(), bytes, seed_);
    }

    // The memory is the result buffer of a get.
    void get_into(const Way& way, std::size_t bytes, Outcome& all) {
        fill(steady_.data(), bytes, ++seed_);
        transfer(true, steady_.data(), bytes, 0, win_);
        const Taken taken(way, bytes);
        if (!usable(taken, last_got_, all)) return;
        std::fill_n(taken.data(), bytes, '?');
        transfer(false, taken.data(), bytes, 0, win_);
        all.got += differing(taken.data(), bytes, seed_);
    }

    // The memory is attached; the partner gets from it and puts into it.
    void attach(const Way& way, std::size_t bytes, Outcome& all) {
        const Taken taken(way, bytes);
        const bool have = usable(taken, last_region_, all);
        const int seed = ++seed_;  // the same on all ranks
        if (have) {
            fill(taken.data(), bytes, seed);
            MPI_Win_attach(dynamic_, taken.data(), static_cast<MPI_Aint>(bytes));
        }
        const MPI_Aint there = exchange(have ? address(taken.data()) : 0);
        if (there != 0) all.region += get_then_put(there, bytes, seed, dynamic_);
        meet();
        if (!have) return;
        all.region += differing(taken.data(), bytes, seed + 1);
        MPI_Win_detach(dynamic_, taken.data());
    }

    // The memory is a window's.
    void create(const Way& way, std::size_t bytes, Outcome& all) {
        const Taken taken(way, bytes);
        const bool have = usable(taken, last_window_, all);
        const int seed = ++seed_;
        if (have) fill(taken.data(), bytes, seed);
        MPI_Win win = MPI_WIN_NULL;
        MPI_Win_create(taken.data(), static_cast<MPI_Aint>(have ? bytes : 0), 1, MPI_INFO_NULL, comm_, &win);
        MPI_Win_lock_all(0, win);
        if (exchange(have ? 1 : 0) != 0) all.window += get_then_put(0, bytes, seed, win);
        meet();
        MPI_Win_unlock_all(win);
        if (have) all.window += differing(taken.data(), bytes, seed + 1);
        MPI_Win_free(&win);
    }

    long get_then_put(MPI_Aint there, std::size_t bytes, int seed, MPI_Win win) {
        std::fill(steady_.begin(), steady_.end(), '?');
        transfer(false, steady_.data(), bytes, there, win);
        const long wrong = differing(steady_.data(), bytes, seed);
        fill(steady_.data(), bytes, seed + 1);
        transfer(true, steady_.data(), bytes, there, win);
        return wrong;
    }

    MPI_Comm comm_ = MPI_COMM_NULL;
    MPI_Win win_ = MPI_WIN_NULL;
    MPI_Win dynamic_ = MPI_WIN_NULL;
    char* base_ = nullptr;
    std::vector<char> steady_;
    int seed_ = 0;
    char* last_put_ = nullptr;
    char* last_got_ = nullptr;
    char* last_region_ = nullptr;
    char* last_window_ = nullptr;
};

void report(const Way& way, const Outcome& all, int thread, bool must_return) {
    const auto wrong = [&](long bytes, const char* role) {
        if (bytes == 0) return;
        fail(__FILE__, __LINE__,
             "thread " + std::to_string(thread) + ", " + role + ": " + std::to_string(bytes) + " wrong bytes");
    };
    wrong(all.put, "origin's buffers of puts");
    wrong(all.got, "result buffers of gets");
    wrong(all.region, "attached regions");
    wrong(all.window, "windows' memory");
    if (all.refused != 0 && way.may_be_refused) return note_skip("the system refuses the memory");
    CHECK_EQ(all.refused, 0);
    if (!must_return || all.returned > 0) return;
#ifdef __SANITIZE_ADDRESS__
    note_skip("AddressSanitizer's malloc keeps freed memory");
#else
    fail(__FILE__, __LINE__, "no memory came back at the same place: the case has shown nothing");
#endif
}

void one_thread(const Way& way) {
    report(way, Lane().run(way, full() ? 8 : 2, true), 0, true);
}

void two_threads(const Way& way) {
    Lane lanes[2];
    Outcome all[2];
    std::thread second([&] { all[1] = lanes[1].run(way, full() ? 8 : 2, false); });
    all[0] = lanes[0].run(way, full() ? 8 : 2, false);
    second.join();
    for (int thread = 0; thread < 2; ++thread)
        report(way, all[thread], thread, false);
}

// All processes count under an exclusive lock, each turn in memory from a heap that shrinks. All words are equal.
void count_under_locks(std::size_t words, int turns) {
    std::int64_t* base = nullptr;
    MPI_Win win = MPI_WIN_NULL;
    const auto bytes = words * sizeof *base;
    const int count = static_cast<int>(words);
    MPI_Win_allocate(static_cast<MPI_Aint>(bytes), sizeof *base, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    std::fill_n(base, words, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int turn = 0; turn < turns; ++turn) {
        const Taken taken(rdma::kHeapThatShrinks, bytes);
        auto* const values = reinterpret_cast<std::int64_t*>(taken.data());
        std::iota(values, values + words, -1000);
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Get(values, count, MPI_INT64_T, 0, 0, count, MPI_INT64_T, win);
        MPI_Win_flush(0, win);
        CHECK_ALL(values, words, [&](std::size_t) { return values[0]; });
        std::for_each(values, values + words, [](std::int64_t& value) { ++value; });
        MPI_Put(values, count, MPI_INT64_T, 0, 0, count, MPI_INT64_T, win);
        MPI_Win_unlock(0, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        CHECK_ALL(base, words, [&](std::size_t) { return std::int64_t{turns} * size(); });
        MPI_Win_unlock(0, win);
    }
    MPI_Win_free(&win);
}

}  // namespace

#define WAY(name, way)               \
    CASE(name) {                     \
        one_thread(rdma::way);       \
    }                                \
    CASE(name##_in_two_threads) {    \
        SKIP_IF(!rdma::way.threads); \
        two_threads(rdma::way);      \
    }

WAY(a_heap_that_shrinks, kHeapThatShrinks)
WAY(large_memory_of_malloc, kLargeMalloc)
WAY(munmap_and_mmap, kMunmap)
WAY(mmap_over_a_mapping, kMapOver)
WAY(madvise_dontneed, kDontNeed)
WAY(mremap_away, kMoveAway)
WAY(mremap_over_a_mapping, kMoveOver)
WAY(mremap_to_less, kCutDown)
WAY(segments_of_system_v, kSegments)
WAY(the_break, kBreak)

CASE(counters_under_a_lock) {
    for (const std::size_t words : {std::size_t{1}, std::size_t{512}, std::size_t{4000}})
        count_under_locks(words, full() ? 100 : 10);
}
