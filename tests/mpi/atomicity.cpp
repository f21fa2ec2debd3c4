// Accumulates by the owner, by peers, of all forms and sizes at once on the same elements: no update may be lost, no
// aligned word torn, and those of one origin arrive in the order of the calls.
#include <algorithm>
#include <cstdint>

#include "harness.h"
#include "windows.h"

OSCT_PROGRAM(MPI_THREAD_SINGLE, "MPI_Accumulate", "MPI_Fetch_and_op", "MPI_Get_accumulate", "MPI_Compare_and_swap",
             "MPI_Win_lock_all", "MPI_Win_unlock_all", "MPI_Put", "MPI_Win_flush", "MPI_Get")

// The owner takes part: an update of its own memory that skips the lock of its peers loses some of theirs.
CASE_BY_KIND(all_processes_add_to_one_double) {
    const int each = osct::full() ? 250000 : osct::served_by_osc() ? 50000 : 500;
    const double one = 1;
    Window win(kind, 64);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < each; ++i) {
        MPI_Accumulate(&one, 1, MPI_DOUBLE, 0, win.at(0, 0), 1, MPI_DOUBLE, MPI_SUM, win);
        if (i % 1000 == 999) MPI_Win_flush(0, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() == 0) CHECK_EQ(win.base<double>()[0], static_cast<double>(each) * size());
    MPI_Barrier(MPI_COMM_WORLD);
}

// Single elements, rows and long vectors over the same memory: whatever path each takes, they exclude one another.
CASE_BY_KIND(every_form_on_the_same_elements) {
    constexpr std::size_t kElements = 4096;
    constexpr std::size_t kRow = 100;  // some lie across the chunks of memory that a lock of libosc's guards
    const int rounds = osct::served_by_osc() ? 300 : 20;
    Window win(kind, kElements * 8);
    std::vector<std::int64_t> ones(kElements, 1), result(kElements);
    const std::int64_t one = 1;
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < rounds; ++i) {
        std::int64_t old = 0, expected = 0;
        switch ((i + rank()) % 5) {
            case 0:
                MPI_Accumulate(ones.data(), kElements, MPI_INT64_T, 0, win.at(0, 0), kElements, MPI_INT64_T, MPI_SUM,
                               win);
                break;
            case 1:
                MPI_Get_accumulate(ones.data(), kElements, MPI_INT64_T, result.data(), kElements, MPI_INT64_T, 0,
                                   win.at(0, 0), kElements, MPI_INT64_T, MPI_SUM, win);
                break;
            case 2:
                for (std::size_t e = 0; e < kElements; ++e)
                    MPI_Fetch_and_op(&one, &result[e], MPI_INT64_T, 0, win.at(0, e * 8), MPI_SUM, win);
                break;
            case 3:
                for (std::size_t e = 0; e < kElements; e += kRow) {
                    const auto count = static_cast<int>(std::min(kRow, kElements - e));
                    MPI_Accumulate(ones.data(), count, MPI_INT64_T, 0, win.at(0, e * 8), count, MPI_INT64_T, MPI_SUM,
                                   win);
                }
                break;
            default:
                // One element by compare-and-swap until it succeeds, all others at once.
                MPI_Accumulate(ones.data() + 1, kElements - 1, MPI_INT64_T, 0, win.at(0, 8), kElements - 1, MPI_INT64_T,
                               MPI_SUM, win);
                do {
                    expected = old;
                    const std::int64_t wanted = expected + 1;
                    MPI_Compare_and_swap(&wanted, &expected, &old, MPI_INT64_T, 0, win.at(0, 0), win);
                    MPI_Win_flush(0, win);
                } while (old != expected);
        }
        MPI_Win_flush(0, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() == 0) CHECK_ALL(win.base<std::int64_t>(), kElements, [&](std::size_t) { return rounds * size(); });
    MPI_Barrier(MPI_COMM_WORLD);
}

// Each value that a fetching add returns is returned once.
CASE_BY_KIND(tickets_are_unique) {
    constexpr int kEach = 500;
    Window win(kind, 64);
    const int one = 1;
    std::vector<int> mine(kEach), all(static_cast<std::size_t>(kEach * size()));
    MPI_Win_lock_all(0, win);
    for (int& ticket : mine) {
        MPI_Fetch_and_op(&one, &ticket, MPI_INT, size() - 1, win.at(size() - 1, 0), MPI_SUM, win);
        MPI_Win_flush(size() - 1, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Allgather(mine.data(), kEach, MPI_INT, all.data(), kEach, MPI_INT, MPI_COMM_WORLD);
    std::vector<int> seen(all.size(), 0);
    for (int ticket : all) {
        if (ticket >= 0 && static_cast<std::size_t>(ticket) < seen.size()) ++seen[static_cast<std::size_t>(ticket)];
    }
    CHECK_ALL(seen.data(), seen.size(), [](std::size_t) { return 1; });
}

// REPLACE of one element and of 4,096, in turn and without a flush between: the last value is the one that stays.
CASE_BY_KIND(small_and_large_keep_their_order) {
    constexpr int kLarge = 4096;
    Window win(kind, kLarge * sizeof(int));
    const int target = right();
    const int last = 40;
    std::vector<std::vector<int>> values;
    for (int i = 0; i <= last; ++i)
        values.emplace_back(kLarge, i + rank() * 1000);
    MPI_Win_lock_all(0, win);
    for (int upto = 0; upto <= last; ++upto) {
        for (int i = 0; i <= upto; ++i) {
            const int count = i % 2 ? kLarge : 1;
            MPI_Accumulate(values[static_cast<std::size_t>(i)].data(), count, MPI_INT, target, win.at(target, 0), count,
                           MPI_INT, MPI_REPLACE, win);
        }
        int none = 0, seen = -1;
        MPI_Get_accumulate(&none, 0, MPI_INT, &seen, 1, MPI_INT, target, win.at(target, 0), 1, MPI_INT, MPI_NO_OP, win);
        MPI_Win_flush(target, win);
        CHECK_EQ(seen, upto + rank() * 1000);
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
}

// An aligned word that alternates between 0 and ~0 is only ever seen as one of them: by the owner's loads, by gets.
CASE_BY_KIND(aligned_words_do_not_tear) {
    SKIP_IF(size() < 2);
    HOST_CANNOT("the host copies bytes as memcpy and its progress pleases");
    Window win(kind, 128);
    MPI_Win_lock_all(0, win);
    // Where ranks share cores a round may take a time slice or two; a second of rounds is a test then, too.
    const int rounds = 20000, least = 500;
    const double end_of_time = MPI_Wtime() + (osct::full() ? 15 : 1);
    if (rank() == 1) {
        for (int i = 0; i < least || (i < rounds && MPI_Wtime() < end_of_time); ++i) {
            const std::uint64_t out = i % 2 ? ~std::uint64_t{0} : 0;
            MPI_Put(&out, 1, MPI_UINT64_T, 0, win.at(0, 8), 1, MPI_UINT64_T, win);
            MPI_Win_flush(0, win);
        }
        const std::uint64_t end = 1;
        MPI_Put(&end, 1, MPI_UINT64_T, 0, win.at(0, 64), 1, MPI_UINT64_T, win);
        MPI_Win_flush(0, win);
    } else if (rank() == 0) {
        const volatile std::uint64_t* word = win.base<std::uint64_t>();
        long torn = 0;
        for (long poll = 0; word[8] == 0; ++poll) {
            const std::uint64_t seen = word[1];
            if (seen != 0 && seen != ~std::uint64_t{0}) ++torn;
            if (poll % 64 != 0) continue;
            std::uint64_t got = 1;
            MPI_Get(&got, 1, MPI_UINT64_T, 0, win.at(0, 8), 1, MPI_UINT64_T, win);
            MPI_Win_flush(0, win);
            if (got != 0 && got != ~std::uint64_t{0}) ++torn;
        }
        CHECK_EQ(torn, 0L);
    } else {
        for (int i = 0; i < least || (i < rounds / 10 && MPI_Wtime() < end_of_time); ++i) {
            std::uint64_t seen = 1;
            MPI_Get(&seen, 1, MPI_UINT64_T, 0, win.at(0, 8), 1, MPI_UINT64_T, win);
            MPI_Win_flush(0, win);
            CHECK(seen == 0 || seen == ~std::uint64_t{0});
        }
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
}
