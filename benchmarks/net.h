// What net_bench (MPI) and net_raw (bare libfabric) must have in common for their figures to be comparable: sizes,
// loops and names. Knows neither of the two.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "timing.h"

namespace bench {

// A small operation over the network takes about ten microseconds: batches long enough for a thousand of them, and a
// warm-up that is longer than some lost time slices.
inline Budget net_budget(bool brief) {
    return brief ? Budget{1e6, 1e6, 3} : Budget{4e7, 2e7, 9};
}

// Streams of small operations: this many to as many different words, then one flush.
inline constexpr std::size_t kPerFlush = 1000;
inline constexpr std::size_t kStreamBytes = 65536;

// Streams of blocks: this many, then one flush.
inline constexpr std::size_t kBlockBytes = std::size_t{64} << 10;
inline constexpr std::size_t kBlocksPerFlush = 16;
inline constexpr std::size_t kLargeBytes = std::size_t{4} << 20;

// The target of the "computing" measures computes this long at a time.
inline constexpr double kComputingNs = 50e6;

inline double idle_ns(bool brief) {
    return brief ? 3e8 : 1e10;
}

// Processor time of the whole process.
inline double cpu_ns() {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

inline void sleep_ns(double ns) {
    timespec t{};
    t.tv_sec = static_cast<time_t>(ns / 1e9);
    t.tv_nsec = static_cast<long>(ns - static_cast<double>(t.tv_sec) * 1e9);
    nanosleep(&t, nullptr);
}

// The words of a stream, scattered over the window in an order that is the same in every process: neither neighbours in
// memory nor neighbours in time, so that merging what is adjacent wins nothing.
inline std::vector<std::size_t> stream_offsets(std::uint64_t seed) {
    std::vector<std::size_t> words(kStreamBytes / 8);
    std::iota(words.begin(), words.end(), std::size_t{0});
    std::shuffle(words.begin(), words.end(), std::mt19937_64(seed));
    words.resize(kPerFlush);
    for (std::size_t& word : words)
        word *= 8;
    return words;
}

// Word i of a block: known everywhere, different for neighbours.
inline std::uint64_t block_word(std::size_t i) {
    return i % 509 + 1;
}

// One operation of a stream as a share of the whole.
inline Timing per_one(Timing t, std::size_t parts) {
    const auto n = static_cast<double>(parts);
    t.median /= n;
    t.least /= n;
    t.most /= n;
    t.late /= n;
    t.late_single /= n;
    return t;
}

// Times operations one by one, as many as fit: at least a few, whatever they cost.
template <class Body>
Timing sampled(bool brief, Body&& once) {
    constexpr std::size_t kAtLeast = 5;
    // Several of the target's absences.
    const double until = now_ns() + (brief ? 1.2 : 6.5) * kComputingNs;
    std::vector<double> each;
    while (each.size() < kAtLeast || now_ns() < until) {
        const double begin = now_ns();
        once();
        each.push_back(now_ns() - begin);
    }
    return summarise(std::move(each), 1);
}

// One operation per computation: the origin computes as long as the target does before each.
template <class Body>
Timing sampled_apart(bool brief, Body&& once) {
    const int samples = brief ? 5 : 101;
    std::vector<double> each;
    for (int i = 0; i < samples; ++i) {
        spin_for_ns(kComputingNs);
        const double begin = now_ns();
        once();
        each.push_back(now_ns() - begin);
    }
    return summarise(std::move(each), 1);
}

}  // namespace bench
