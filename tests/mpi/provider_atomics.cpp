// Accumulates by the provider's atomics (OSC_DEBUG=atomics, osc_atomics): the agreement of the processes, results,
// order and atomicity on targets of this process, its node and others, and the operations that the provider lacks.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Accumulate", "MPI_Get_accumulate", "MPI_Fetch_and_op", "MPI_Compare_and_swap",
             "MPI_Win_lock_all", "MPI_Win_flush")

using osct::atomics;

namespace {

constexpr WindowKind kKinds[] = {WindowKind::Allocate, WindowKind::Create, WindowKind::CreateAllocMem};

/// A window that asks for the provider's atomics, inside a lock_all.
class Chosen {
  public:
    explicit Chosen(WindowKind kind, std::size_t bytes = 4096, const char* wish = "provider")
        : window(kind, bytes, MPI_COMM_WORLD, info_with(wish)) {
        MPI_Win_lock_all(0, win());
    }
    ~Chosen() {
        MPI_Win_unlock_all(win());
        MPI_Info_free(&info_);
    }
    Chosen(const Chosen&) = delete;
    Chosen& operator=(const Chosen&) = delete;

    MPI_Win win() const { return window; }
    /// Ends all operations of all processes.
    void meet() const {
        MPI_Win_flush_all(win());
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_sync(win());
    }

  private:
    MPI_Info info_with(const char* wish) {
        MPI_Info_create(&info_);
        if (wish != nullptr) MPI_Info_set(info_, "osc_atomics", wish);
        return info_;
    }
    MPI_Info info_ = MPI_INFO_NULL;

  public:
    const Window window;
};

std::string in_use(const Chosen& window) {
    return osct::info_value(window.win(), "osc_atomics");
}

bool available() {
    const char* const provider = std::getenv("OSC_OFI_PROVIDER");
    const bool net = provider != nullptr && std::strcmp(provider, "net") == 0;
    return std::atoi(osct::debug_setting("fake_nodes").c_str()) > 1 && size() > 1 && !net;
}

}  // namespace

// A window uses the provider's atomics only if all processes ask for them.
CASE(all_agree) {
    const std::string wanted = available() ? "provider" : "messages";
    CHECK_EQ(in_use(Chosen(WindowKind::Allocate)), wanted);
    CHECK_EQ(in_use(Chosen(WindowKind::Create)), wanted);
    CHECK_EQ(in_use(Chosen(WindowKind::Dynamic)), std::string("messages"));
    CHECK_EQ(in_use(Chosen(WindowKind::Allocate, 64, "messages")), std::string("messages"));
    CHECK_EQ(in_use(Chosen(WindowKind::Allocate, 64, rank() == 0 ? "messages" : "provider")),
             std::string(size() > 1 || !available() ? "messages" : "provider"));
}

// Each target, this process and the node's others included, gets one atomic for each call and no message, also in runs
// so long that windows without these atomics batch them.
CASE(one_atomic_for_each_call) {
    SKIP_IF(!available());
    constexpr int kRun = 100;
    for (const WindowKind kind : kKinds) {
        const Chosen on(kind);
        for (int target = 0; target < size(); ++target) {
            std::int64_t one = 1, old = 0;
            CHECK_OK(MPI_Fetch_and_op(&one, &old, MPI_INT64_T, target, on.window.at(target, 8), MPI_NO_OP, on.win()));
            CHECK_OK(MPI_Win_flush(target, on.win()));  // the target has described its memory
            CHECK_EQ(atomics([&] {
                         for (int i = 0; i < kRun; ++i)
                             CHECK_OK(MPI_Accumulate(&one, 1, MPI_INT64_T, target, on.window.at(target, 0), 1,
                                                     MPI_INT64_T, MPI_SUM, on.win()));
                         CHECK_OK(MPI_Win_flush(target, on.win()));
                         CHECK_OK(MPI_Fetch_and_op(&one, &old, MPI_INT64_T, target, on.window.at(target, 0), MPI_SUM,
                                                   on.win()));
                         CHECK_OK(MPI_Win_flush(target, on.win()));
                     }),
                     kRun + 1);
            CHECK(old >= kRun);
        }
        on.meet();
        CHECK_EQ(on.window.base<std::int64_t>()[0], (kRun + 1) * size());
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

// REPLACE and reading of one element, and rows that overlap, without a flush between: as in the order of the calls.
// Accumulates on a type that the provider lacks go by message, in the same order.
CASE(calls_keep_their_order) {
    constexpr int kRow = 700;
    for (const WindowKind kind : kKinds) {
        const Chosen on(kind, kRow * sizeof(std::int64_t) * static_cast<std::size_t>(size()));
        for (int target = 0; target < size(); ++target) {
            const auto at = [&](std::size_t element) {
                return on.window.at(target, (static_cast<std::size_t>(rank()) * kRow + element) * sizeof(std::int64_t));
            };
            constexpr int kRounds = 12;
            std::vector<std::vector<std::int64_t>> rows(kRounds, std::vector<std::int64_t>(kRow));
            std::vector<std::int64_t> seen(kRounds), middle(kRounds);
            std::vector<long double> sent(kRounds), far(kRounds);
            for (int round = 0; round < kRounds; ++round) {
                auto& row = rows[static_cast<std::size_t>(round)];
                for (int i = 0; i < kRow; ++i)
                    row[static_cast<std::size_t>(i)] = round * 1000 + i;
                const auto index = static_cast<std::size_t>(round);
                CHECK_OK(MPI_Accumulate(row.data(), kRow - round, MPI_INT64_T, target, at(index), kRow - round,
                                        MPI_INT64_T, MPI_REPLACE, on.win()));
                CHECK_OK(MPI_Fetch_and_op(nullptr, &seen[index], MPI_INT64_T, target, at(300), MPI_NO_OP, on.win()));
                if (round % 4 == 3) {
                    // The same bytes as another type: they follow the row, and the next reading follows them.
                    sent[index] = round;
                    CHECK_OK(MPI_Accumulate(&sent[index], 1, MPI_LONG_DOUBLE, target, at(300), 1, MPI_LONG_DOUBLE,
                                            MPI_REPLACE, on.win()));
                    CHECK_OK(MPI_Get_accumulate(nullptr, 0, MPI_LONG_DOUBLE, &far[index], 1, MPI_LONG_DOUBLE, target,
                                                at(300), 1, MPI_LONG_DOUBLE, MPI_NO_OP, on.win()));
                }
                CHECK_OK(MPI_Fetch_and_op(nullptr, &middle[index], MPI_INT64_T, target, at(600), MPI_NO_OP, on.win()));
            }
            CHECK_OK(MPI_Win_flush(target, on.win()));
            for (int round = 0; round < kRounds; ++round) {
                CHECK_EQ(seen[static_cast<std::size_t>(round)], round * 1000 + 300 - round);
                CHECK_EQ(middle[static_cast<std::size_t>(round)], round * 1000 + 600 - round);
                if (round % 4 == 3) CHECK(far[static_cast<std::size_t>(round)] == static_cast<long double>(round));
            }
        }
        on.meet();
    }
}

// All processes, the owner among them, add by all forms to one element and to rows around it.
CASE(no_update_is_lost) {
    constexpr int kRow = 64;
    const int rounds = osct::full() ? 200 : 12;
    for (const WindowKind kind : kKinds) {
        const Chosen on(kind);
        const std::vector<double> ones(kRow, 1.0);
        std::vector<double> results(kRow);
        for (int round = 0; round < rounds; ++round) {
            const auto at = on.window.at(0, 0);
            if (round % 3 == 0) {
                CHECK_OK(MPI_Accumulate(ones.data(), kRow, MPI_DOUBLE, 0, at, kRow, MPI_DOUBLE, MPI_SUM, on.win()));
            } else if (round % 3 == 1) {
                CHECK_OK(MPI_Get_accumulate(ones.data(), kRow, MPI_DOUBLE, results.data(), kRow, MPI_DOUBLE, 0, at,
                                            kRow, MPI_DOUBLE, MPI_SUM, on.win()));
                CHECK_OK(MPI_Win_flush(0, on.win()));
            } else {
                for (int i = 0; i < kRow; ++i)
                    CHECK_OK(MPI_Fetch_and_op(&ones[0], &results[static_cast<std::size_t>(i)], MPI_DOUBLE, 0,
                                              on.window.at(0, static_cast<std::size_t>(i) * 8), MPI_SUM, on.win()));
                CHECK_OK(MPI_Win_flush(0, on.win()));
            }
            const std::int64_t slot = 512;
            std::int64_t old = 0, expected = 0;
            do {
                expected = old;
                const std::int64_t wanted = expected + 1;
                CHECK_OK(
                    MPI_Compare_and_swap(&wanted, &expected, &old, MPI_INT64_T, 0, on.window.at(0, slot), on.win()));
                CHECK_OK(MPI_Win_flush(0, on.win()));
            } while (old != expected);
        }
        on.meet();
        if (rank() == 0) {
            CHECK_ALL(on.window.base<double>(), std::size_t{kRow}, [&](std::size_t) { return 1.0 * rounds * size(); });
            CHECK_EQ(on.window.base<std::int64_t>()[64], std::int64_t{rounds} * size());
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

// Elements that are not aligned go by message, and the aligned rows of one call go by the provider.
CASE(elements_at_odd_places) {
    const Chosen on(WindowKind::Allocate);
    for (int target = 0; target < size(); ++target) {
        const int one[3] = {1, 1, 1};
        const int lengths[3] = {1, 1, 1};
        const MPI_Aint places[3] = {0, 6, 12};  // the second one is not aligned
        MPI_Datatype spread;
        MPI_Type_create_hindexed(3, lengths, places, MPI_INT, &spread);
        MPI_Type_commit(&spread);
        for (int i = 0; i < 5; ++i)
            CHECK_OK(MPI_Accumulate(one, 3, MPI_INT, target, on.window.at(target, 0), 1, spread, MPI_SUM, on.win()));
        int results[3] = {};
        CHECK_OK(MPI_Get_accumulate(nullptr, 0, MPI_INT, results, 3, MPI_INT, target, on.window.at(target, 0), 1,
                                    spread, MPI_NO_OP, on.win()));
        CHECK_OK(MPI_Win_flush(target, on.win()));
        for (const int result : results)
            CHECK(result >= 5);
        MPI_Type_free(&spread);
    }
    on.meet();
    for (const std::size_t place : {0, 6, 12}) {
        int value = 0;
        std::memcpy(&value, on.window.base() + place, sizeof value);
        CHECK_EQ(value, 5 * size());
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

// Fences and post-start epochs end the operations on every target, with requests and without.
CASE(epochs_end_the_operations) {
    const Info info{{"osc_atomics", "provider"}};
    Window win(WindowKind::Allocate, 64, MPI_COMM_WORLD, info);
    const std::int64_t one = 1;
    for (int round = 1; round <= 6; ++round) {
        CHECK_OK(MPI_Win_fence(0, win));
        for (int target = 0; target < size(); ++target)
            CHECK_OK(MPI_Accumulate(&one, 1, MPI_INT64_T, target, win.at(target, 0), 1, MPI_INT64_T, MPI_SUM, win));
        CHECK_OK(MPI_Win_fence(0, win));
        CHECK_EQ(win.base<std::int64_t>()[0], round * size());
    }
    CHECK_OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    MPI_Group world;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    for (int round = 1; round <= 6; ++round) {
        CHECK_OK(MPI_Win_post(world, 0, win));
        CHECK_OK(MPI_Win_start(world, 0, win));
        for (int target = 0; target < size(); ++target)
            CHECK_OK(MPI_Accumulate(&one, 1, MPI_INT64_T, target, win.at(target, 8), 1, MPI_INT64_T, MPI_SUM, win));
        CHECK_OK(MPI_Win_complete(win));
        CHECK_OK(MPI_Win_wait(win));
        CHECK_EQ(win.base<std::int64_t>()[1], round * size());
    }
    MPI_Group_free(&world);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int target = 0; target < size(); ++target) {
        std::int64_t old[2] = {};
        MPI_Request requests[2];
        CHECK_OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win));
        for (int i = 0; i < 2; ++i)
            CHECK_OK(MPI_Rget_accumulate(&one, 1, MPI_INT64_T, &old[i], 1, MPI_INT64_T, target, win.at(target, 16), 1,
                                         MPI_INT64_T, MPI_SUM, win, &requests[i]));
        CHECK_OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        CHECK_EQ(old[1], old[0] + 1);
        CHECK_OK(MPI_Raccumulate(&one, 1, MPI_INT64_T, target, win.at(target, 16), 1, MPI_INT64_T, MPI_SUM, win,
                                 &requests[0]));
        CHECK_OK(MPI_Win_unlock(target, win));
        CHECK_OK(MPI_Wait(&requests[0], MPI_STATUS_IGNORE));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK_OK(MPI_Win_lock(MPI_LOCK_SHARED, rank(), 0, win));
    CHECK_EQ(win.base<std::int64_t>()[2], 3 * size());
    CHECK_OK(MPI_Win_unlock(rank(), win));
    MPI_Barrier(MPI_COMM_WORLD);
}
