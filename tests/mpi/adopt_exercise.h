// What the tests of adopted windows and of adopted attached regions do to the memory, once they have it.
#pragma once

#include <cstring>
#include <vector>

#include "adopt.h"

namespace adopt {

/// Every rank puts a pattern to all bytes of its right neighbour's memory, where they begin at displacement `there`,
/// gets it back, and fetches the first and the last word; the neighbour checks its `base`.
inline void exercise(MPI_Win win, char* base, std::size_t bytes, MPI_Aint there = 0, int seed = 0, int rounds = 1) {
    const int left = (osct::rank() + osct::size() - 1) % osct::size();
    std::vector<char> sent(bytes), back(bytes);
    const int count = static_cast<int>(bytes);
    for (int round = 0; round < rounds; ++round) {
        const auto pattern = [&](int from) {
            return [=](std::size_t i) {
                return static_cast<char>(from * 7 + round + seed + static_cast<int>(i * 3 + i / 251));
            };
        };
        for (std::size_t i = 0; i < bytes; ++i)
            sent[i] = pattern(osct::rank())(i);
        MPI_Win_fence(0, win);
        CHECK_OK(MPI_Put(sent.data(), count, MPI_CHAR, right(), there, count, MPI_CHAR, win));
        MPI_Win_fence(0, win);
        CHECK_ALL(base, bytes, pattern(left));
        CHECK_OK(MPI_Get(back.data(), count, MPI_CHAR, right(), there, count, MPI_CHAR, win));
        MPI_Win_fence(0, win);
        CHECK_ALL(back.data(), bytes, pattern(osct::rank()));
        const long zero = 0;
        for (const MPI_Aint at : {MPI_Aint{0}, static_cast<MPI_Aint>(bytes - 8)}) {
            long word = 0, had = 0;
            CHECK_OK(MPI_Fetch_and_op(&zero, &word, MPI_LONG, right(), there + at, MPI_SUM, win));
            MPI_Win_fence(0, win);
            std::memcpy(&had, sent.data() + at, sizeof had);
            CHECK_EQ(word, had);
        }
        MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/// Rank 0 stores into the words before and behind its `bytes` bytes at `base` all the time, while the others put and
/// add to the first and last of them, which begin at displacement `there`.
inline void store_beside(MPI_Win win, char* base, std::size_t bytes, MPI_Aint there) {
    auto* const before = reinterpret_cast<volatile long*>(base - 8);
    auto* const after = reinterpret_cast<volatile long*>(base + bytes);
    MPI_Win_lock_all(0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Request barrier;
    if (osct::rank() == 0) {
        int ended = 0;
        MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
        for (long i = 1; ended == 0; ++i) {
            *before = i;
            *after = -i;
            CHECK_EQ(*before, i);
            CHECK_EQ(*after, -i);
            if (i % 1000 == 0) MPI_Test(&barrier, &ended, MPI_STATUS_IGNORE);
        }
    } else {
        const std::vector<char> own(5000, static_cast<char>(osct::rank()));
        const long one = 1;
        for (int i = 0; i < 300; ++i) {
            for (const std::size_t at : {std::size_t{0}, bytes - own.size()})
                MPI_Put(own.data(), 5000, MPI_CHAR, 0, there + static_cast<MPI_Aint>(at), 5000, MPI_CHAR, win);
            for (const std::size_t at : {std::size_t{0}, bytes - 8})
                MPI_Accumulate(&one, 1, MPI_LONG, 0, there + static_cast<MPI_Aint>(at), 1, MPI_LONG, MPI_SUM, win);
            MPI_Win_flush(0, win);
        }
        MPI_Ibarrier(MPI_COMM_WORLD, &barrier);
        MPI_Wait(&barrier, MPI_STATUS_IGNORE);
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
}

/// All ranks add to the first twelve words of rank 0, which begin at displacement `there`, by every call; then rank 0
/// checks the sums at `base`. The words are zero before.
inline void update_words(MPI_Win win, const char* base, MPI_Aint there) {
    constexpr int kWords = 12, kRounds = 400;
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < kRounds; ++i) {
        for (int word = 0; word < kWords; ++word) {
            const long one = 1;
            long before = 0, seen = 0;
            const MPI_Aint at = there + word * 8;
            switch ((i + word) % 4) {
                case 0:
                    MPI_Accumulate(&one, 1, MPI_LONG, 0, at, 1, MPI_LONG, MPI_SUM, win);
                    break;
                case 1:
                    MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, at, MPI_SUM, win);
                    break;
                case 2:
                    MPI_Get_accumulate(&one, 1, MPI_LONG, &before, 1, MPI_LONG, 0, at, 1, MPI_LONG, MPI_SUM, win);
                    break;
                default:
                    do {
                        MPI_Fetch_and_op(&seen, &before, MPI_LONG, 0, at, MPI_NO_OP, win);
                        MPI_Win_flush(0, win);
                        const long more = before + 1;
                        seen = before;
                        MPI_Compare_and_swap(&more, &seen, &before, MPI_LONG, 0, at, win);
                        MPI_Win_flush(0, win);
                    } while (before != seen);
            }
            MPI_Win_flush(0, win);
        }
        if (i % 4 == 0) {
            const std::vector<long> ones(kWords, 1);
            MPI_Accumulate(ones.data(), kWords, MPI_LONG, 0, there, kWords, MPI_LONG, MPI_SUM, win);
        }
    }
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (osct::rank() == 0)
        for (int word = 0; word < kWords; ++word) {
            long sum = 0;
            std::memcpy(&sum, base + word * 8, sizeof sum);
            CHECK_EQ(sum, static_cast<long>(osct::size()) * (kRounds + kRounds / 4));
        }
    MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace adopt
