// Many operations under one flush: 8-byte puts and accumulates to scattered words, and 64 KiB puts and gets.
#include <array>
#include <cstring>

#include "measures.h"
#include "net.h"
#include "small_ops.h"
#include "windows.h"

namespace bench {
namespace {

constexpr std::uint64_t kOne = 1;

void put_word(const std::uint64_t& value, std::size_t at, MPI_Win win) {
    MPI_Put(&value, 8, MPI_BYTE, kTarget, static_cast<MPI_Aint>(at), 8, MPI_BYTE, win);
}

void add_one(const std::uint64_t&, std::size_t at, MPI_Win win) {
    MPI_Accumulate(&kOne, 1, MPI_UINT64_T, kTarget, static_cast<MPI_Aint>(at), 1, MPI_UINT64_T, MPI_SUM, win);
}

enum class Word { put, accumulate };

template <Word kind>
void run_words(const Context& c, const std::string& name) {
    WindowSet set(Flavour::allocate, 1, kStreamBytes, c.comm);
    const MPI_Win win = set.window(0);
    const std::vector<std::size_t> offsets = stream_offsets(kSeed);
    std::array<std::uint64_t, kPerFlush> values{};
    std::uint64_t laps = 0;
    Timing timing;
    if (c.origin()) {
        set.lock_all();
        timing = timed(c.budget, 1, [&](std::uint64_t n) {
            for (; n > 0; --n, ++laps) {
                for (std::size_t i = 0; i < kPerFlush; ++i) {
                    values[i] = stamp(i, laps);
                    if constexpr (kind == Word::put) {
                        put_word(values[i], offsets[i], win);
                    } else {
                        add_one(values[i], offsets[i], win);
                    }
                }
                MPI_Win_flush(kTarget, win);
            }
        });
        set.unlock_all();
    }
    MPI_Barrier(c.comm);
    laps = c.agree(laps);
    bool right = true;
    if (c.target()) {
        set.own_begin();
        for (std::size_t i = 0; i < kPerFlush; ++i) {
            const std::uint64_t expected = kind == Word::put ? stamp(i, laps - 1) : laps;
            right = right && Base::word(set.memory(0) + offsets[i]) == expected;
        }
        set.own_end();
    }
    c.report(name, per_one(timing, kPerFlush), right);
}

constexpr std::size_t kWordsPerBlock = kBlockBytes / 8;
constexpr std::size_t kWords = kWordsPerBlock * kBlocksPerFlush;

// The first word of each block of a put carries its stamp.
bool blocks_right(const std::byte* at, bool stamped, std::uint64_t laps) {
    for (std::size_t i = 0; i < kWords; ++i) {
        const bool first = i % kWordsPerBlock == 0;
        const std::uint64_t expected = stamped && first ? stamp(i / kWordsPerBlock, laps - 1) : block_word(i);
        if (Base::word(at + 8 * i) != expected) return false;
    }
    return true;
}

void run_blocks(const Context& c, const std::string& name, bool get) {
    WindowSet set(Flavour::allocate, 1, kBlockBytes * kBlocksPerFlush, c.comm);
    const MPI_Win win = set.window(0);
    std::vector<std::uint64_t> blocks(kWords, 0);
    if (c.origin() != get) {
        for (std::size_t i = 0; i < kWords; ++i)
            blocks[i] = block_word(i);
    }
    if (c.target() && get) {
        set.own_begin();
        std::memcpy(set.memory(0), blocks.data(), 8 * kWords);
        set.own_end();
    }
    MPI_Barrier(c.comm);
    std::uint64_t laps = 0;
    Timing timing;
    bool right = true;
    if (c.origin()) {
        constexpr int kCount = static_cast<int>(kBlockBytes);
        set.lock_all();
        timing = timed(c.budget, 1, [&](std::uint64_t n) {
            for (; n > 0; --n, ++laps) {
                for (std::size_t b = 0; b < kBlocksPerFlush; ++b) {
                    std::uint64_t* block = &blocks[b * kWordsPerBlock];
                    const auto at = static_cast<MPI_Aint>(b * kBlockBytes);
                    if (get) {
                        MPI_Get(block, kCount, MPI_BYTE, kTarget, at, kCount, MPI_BYTE, win);
                    } else {
                        *block = stamp(b, laps);
                        MPI_Put(block, kCount, MPI_BYTE, kTarget, at, kCount, MPI_BYTE, win);
                    }
                }
                MPI_Win_flush(kTarget, win);
            }
        });
        set.unlock_all();
        if (get) right = blocks_right(reinterpret_cast<const std::byte*>(blocks.data()), false, laps);
    }
    MPI_Barrier(c.comm);
    laps = c.agree(laps);
    if (c.target()) {
        set.own_begin();
        right = blocks_right(set.memory(0), !get, laps);
        set.own_end();
    }
    c.report(name, per_one(timing, kBlocksPerFlush), right);
}

}  // namespace

void add_net_stream_measures(Measures& list) {
    list.push_back({"put8_stream", run_words<Word::put>});
    list.push_back({"acc8_stream", run_words<Word::accumulate>});
    list.push_back({"put64k_stream", [](const Context& c, const std::string& n) { run_blocks(c, n, false); }});
    list.push_back({"get64k_stream", [](const Context& c, const std::string& n) { run_blocks(c, n, true); }});
}

}  // namespace bench
