// Two-level locks (OSC_DEBUG=lock_scheme, osc_lock_scheme): the agreement of the processes, mutual exclusion, and the
// number of network atomics, which does not depend on the number of ranks.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include "harness.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Win_lock", "MPI_Win_unlock", "MPI_Win_lock_all", "MPI_Win_unlock_all",
             "MPI_Win_get_info")

using osct::atomics;

namespace {

constexpr int kLongs = 64;

/// A window for which one process requests a scheme.
class Chosen {
  public:
    explicit Chosen(const char* scheme = "two_level", const char* strategy = "auto") {
        const Info info{{"osc_lock", strategy}};
        if (rank() == size() - 1) MPI_Info_set(info, "osc_lock_scheme", scheme);
        CHECK_OK(MPI_Win_allocate(kLongs * 8, 8, info, MPI_COMM_WORLD, &base, &win));
        std::memset(base, 0, kLongs * 8);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    ~Chosen() { CHECK_OK(MPI_Win_free(&win)); }
    Chosen(const Chosen&) = delete;
    Chosen& operator=(const Chosen&) = delete;

    std::string scheme() const { return osct::info_value(win, "osc_lock_scheme"); }

    MPI_Win win = MPI_WIN_NULL;
    long* base = nullptr;
};

std::string setting(const char* name) {
    const char* text = std::getenv(name);
    return text != nullptr ? text : "";
}

bool available() {
    return std::atoi(osct::debug_setting("fake_nodes").c_str()) >= size() && setting("OSC_OFI_PROVIDER") != "net";
}

void get(const Chosen& window, int target, long* to) {
    MPI_Get(to, kLongs, MPI_LONG, target, 0, kLongs, MPI_LONG, window.win);
    MPI_Win_flush(target, window.win);
}

}  // namespace

// One process that requests the scheme is enough if it is possible. The window reports the scheme in use and keeps it.
CASE(all_agree_on_the_scheme) {
    const std::string wanted = available() ? "two_level" : "queued";
    Chosen one;
    CHECK_EQ(one.scheme(), wanted);
    const Info info{{"osc_lock_scheme", "queued"}};
    CHECK_OK(MPI_Win_set_info(one.win, info));
    CHECK_EQ(one.scheme(), wanted);
    const bool everywhere = osct::debug_setting("lock_scheme") == "two_level" && size() > 1 && available();
    CHECK_EQ(Chosen("queued").scheme(), everywhere ? "two_level" : "queued");
    CHECK_EQ(Chosen("neither").scheme(), everywhere ? "two_level" : "queued");
}

CASE(atomics_do_not_depend_on_the_number_of_ranks) {
    SKIP_IF(!available());
    Chosen window;
    for (int round = 0; round < 4; ++round) {
        CHECK_EQ(atomics([&] { MPI_Win_lock_all(0, window.win); }), 1);
        CHECK_EQ(atomics([&] {
                     long block[kLongs];
                     get(window, right(), block);
                     MPI_Win_flush_all(window.win);
                 }),
                 0);
        CHECK_EQ(atomics([&] { MPI_Win_unlock_all(window.win); }), 1);
        MPI_Barrier(MPI_COMM_WORLD);
        for (const int target : {right(), rank()}) {
            CHECK_EQ(atomics([&] { MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window.win); }), 1);
            CHECK_EQ(atomics([&] { MPI_Win_unlock(target, window.win); }), 1);
            MPI_Barrier(MPI_COMM_WORLD);
            CHECK_EQ(atomics([&] { MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window.win); }), 2);
            CHECK_EQ(atomics([&] { MPI_Win_unlock(target, window.win); }), 2);
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
}

// No process holds more than two locks here, so none waits for another.
CASE(the_second_exclusive_lock_costs_less) {
    SKIP_IF(!available() || size() < 2);
    Chosen window;
    for (int turn = 0; turn < size(); ++turn) {
        if (turn == rank()) {
            CHECK_EQ(atomics([&] { MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right(), 0, window.win); }), 2);
            CHECK_EQ(atomics([&] { MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank(), 0, window.win); }), 1);
            CHECK_EQ(atomics([&] { MPI_Win_unlock(right(), window.win); }), 1);
            CHECK_EQ(atomics([&] { MPI_Win_unlock(rank(), window.win); }), 2);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

CASE(nocheck_sends_nothing) {
    SKIP_IF(!available());
    Chosen window;
    const long long messages = osct::counter("network.messages");
    CHECK_EQ(atomics([&] {
                 MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right(), MPI_MODE_NOCHECK, window.win);
                 MPI_Win_unlock(right(), window.win);
                 MPI_Win_lock_all(MPI_MODE_NOCHECK, window.win);
                 MPI_Win_unlock_all(window.win);
             }),
             0);
    CHECK_EQ(osct::counter("network.messages"), messages);
}

// A request for a lock that another process holds returns after that process's release, not before.
CASE(a_lock_is_held_when_the_call_returns) {
    SKIP_IF(!available() || size() < 2);
    Chosen window;
    const int target = size() - 1;
    const auto take = [&](int kind) {
        CHECK_OK(kind == 2 ? MPI_Win_lock_all(0, window.win)
                           : MPI_Win_lock(kind == 1 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, target, 0, window.win));
    };
    const auto give = [&](int kind) {
        CHECK_OK(kind == 2 ? MPI_Win_unlock_all(window.win) : MPI_Win_unlock(target, window.win));
    };
    for (int first = 0; first < 3; ++first) {
        for (int second = 0; second < 3; ++second) {
            double given = 0;
            if (rank() == 0) {
                take(first);
                MPI_Send(&given, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD);
                osct::compute(0.01);
                given = osct::now();
                give(first);
                MPI_Send(&given, 1, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD);
            } else if (rank() == 1) {
                MPI_Recv(&given, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                take(second);
                const double had = osct::now();
                give(second);
                MPI_Recv(&given, 1, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                if (first == 1 || second == 1) CHECK(had >= given);
            }
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
}

// Random kinds of locks by more processes than cores: all words of a target's block are equal at every read, and count
// the writes.
CASE(exclusion_under_contention) {
    SKIP_IF(!available());  // else two exclusive locks and a lock_all may wait for each other
    Chosen window;
    const int rounds = osct::full() ? 300 : 40;
    const int targets = size() < 3 ? size() : 3;
    std::minstd_rand random(static_cast<unsigned>(rank()) + 1);
    std::vector<long> written(static_cast<std::size_t>(targets)), all(written.size());
    long block[kLongs];
    const auto read = [&](int target) {
        get(window, target, block);
        CHECK_ALL(block, std::size_t{kLongs}, [&](std::size_t) { return block[0]; });
    };
    const auto write = [&](int target) {
        read(target);
        for (long& value : block)
            ++value;
        constexpr int kHalf = kLongs / 2;
        MPI_Put(block, kHalf, MPI_LONG, target, 0, kHalf, MPI_LONG, window.win);
        MPI_Put(block + kHalf, kHalf, MPI_LONG, target, kHalf, kHalf, MPI_LONG, window.win);
        ++written[static_cast<std::size_t>(target)];
    };
    for (int round = 0; round < rounds; ++round) {
        const int target = static_cast<int>(random() % static_cast<unsigned>(targets));
        switch (random() % 4) {
            case 0:
                CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window.win));
                read(target);
                CHECK_OK(MPI_Win_unlock(target, window.win));
                break;
            case 1:
                CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window.win));
                write(target);
                CHECK_OK(MPI_Win_unlock(target, window.win));
                break;
            case 2: {  // two at once, in an order that all keep
                const int other = targets - 1;
                if (target < other) CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window.win));
                CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, other, 0, window.win));
                write(other);
                if (target < other) {
                    write(target);
                    CHECK_OK(MPI_Win_unlock(target, window.win));
                }
                CHECK_OK(MPI_Win_unlock(other, window.win));
                break;
            }
            default:
                CHECK_OK(MPI_Win_lock_all(0, window.win));
                for (int each = 0; each < targets; ++each)
                    read(each);
                CHECK_OK(MPI_Win_unlock_all(window.win));
        }
    }
    MPI_Allreduce(written.data(), all.data(), targets, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank() < targets) {
        CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, rank(), 0, window.win));
        CHECK_EQ(window.base[kLongs - 1], all[static_cast<std::size_t>(rank())]);
        CHECK_OK(MPI_Win_unlock(rank(), window.win));
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

// Locks wait for the fence's operations by nothing of their own: those of the epoch before are there all the same.
CASE(locks_behind_fences) {
    SKIP_IF(size() < 2);
    Chosen window;
    for (long round = 1; round <= 8; ++round) {
        const long value = round * 100 + rank();
        CHECK_OK(MPI_Win_fence(MPI_MODE_NOPRECEDE, window.win));
        CHECK_OK(MPI_Put(&value, 1, MPI_LONG, right(), 0, 1, MPI_LONG, window.win));
        CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win));
        long seen = 0;
        CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, left(), 0, window.win));
        CHECK_OK(MPI_Get(&seen, 1, MPI_LONG, left(), 0, 1, MPI_LONG, window.win));
        CHECK_OK(MPI_Win_unlock(left(), window.win));
        CHECK_EQ(seen, round * 100 + (left() + size() - 1) % size());
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

// Updates of the process's own window go in batches, except where the user wants immediate locks.
CASE(immediate_locks_batch_no_updates) {
    SKIP_IF(!osct::served_by_osc());
    for (const bool immediate : {false, true}) {
        const Chosen window("two_level", immediate ? "immediate" : "auto");
        CHECK_OK(MPI_Win_lock_all(0, window.win));
        const long last = 100;
        for (long i = 1; i <= last; ++i)
            CHECK_OK(MPI_Accumulate(&i, 1, MPI_LONG, rank(), 0, 1, MPI_LONG, MPI_MAX, window.win));
        const long seen = std::atomic_ref<long>(window.base[0]).load();
        CHECK_EQ(seen == last, immediate);
        CHECK_OK(MPI_Win_unlock_all(window.win));
        CHECK_EQ(window.base[0], last);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}
