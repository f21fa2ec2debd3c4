// The clock, the timed batches and the one line of JSON that a measure ends in. Knows nothing of MPI, so that the
// plain shared-memory reference is timed by the same code as the libraries.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

namespace bench {

inline double now_ns() {
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

inline void spin_for_ns(double ns) {
    const double end = now_ns() + ns;
    while (now_ns() < end) {
    }
}

// How long a measure may take. The shorter one is for checking that everything works, not for figures.
struct Budget {
    double warm_ns;
    double batch_ns;
    int batches;
};

inline Budget budget(bool brief) {
    return brief ? Budget{2e5, 2e5, 3} : Budget{5e6, 3e6, 9};
}

struct Timing {
    double median = 0;
    double least = 0;
    double most = 0;
    double late = 0;         // the 99th of a hundred; the most of fewer
    double late_single = 0;  // the 90th of a hundred operations that are timed one by one
    std::uint64_t per_batch = 0;
    int batches = 0;
};

inline Timing summarise(std::vector<double> per_operation, std::uint64_t per_batch) {
    std::sort(per_operation.begin(), per_operation.end());
    Timing t;
    t.median = per_operation[per_operation.size() / 2];
    t.least = per_operation.front();
    t.most = per_operation.back();
    t.late = per_operation[per_operation.size() * 99 / 100];
    t.per_batch = per_batch;
    t.batches = static_cast<int>(per_operation.size());
    return t;
}

// How many operations fill one batch, given that `n` of them took `ns`.
inline std::uint64_t fill_batch(const Budget& b, std::uint64_t n, double ns) {
    const double fit = b.batch_ns / std::max(ns, 1.0) * static_cast<double>(n);
    return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(fit));
}

// Warm-up doubles the number of operations until a run of them would be long enough at the pace of the fastest run, and
// every step of the plan was touched before, so that neither first page faults nor losses of the processor size the
// batches. Operations that are slow by nature are let off.
inline constexpr double kWarmUpAtMostNs = 3e8;

inline bool warm(const Budget& b, std::uint64_t n, std::size_t steps, double took, double elapsed) {
    return (took >= b.warm_ns && n >= 2 * steps) || elapsed >= kWarmUpAtMostNs;
}

// `body(n)` runs n operations of a plan with `steps` steps.
template <class Body>
Timing timed(const Budget& b, std::size_t steps, Body&& body) {
    const double start = now_ns();
    std::uint64_t n = 1;
    double each_took = std::numeric_limits<double>::max();
    for (;; n *= 2) {
        const double begin = now_ns();
        body(n);
        const double end = now_ns();
        each_took = std::min(each_took, (end - begin) / static_cast<double>(n));
        if (warm(b, n, steps, each_took * static_cast<double>(n), end - start)) break;
    }
    const std::uint64_t per_batch = fill_batch(b, 1, each_took);
    std::vector<double> each;
    for (int i = 0; i < b.batches; ++i) {
        const double begin = now_ns();
        body(per_batch);
        each.push_back((now_ns() - begin) / static_cast<double>(per_batch));
    }
    Timing t = summarise(std::move(each), per_batch);
    std::vector<double> single;
    for (const double begin = now_ns(); single.size() < 10 || now_ns() - begin < b.batch_ns;) {
        const double at = now_ns();
        body(1);
        single.push_back(now_ns() - at);
    }
    std::sort(single.begin(), single.end());
    t.late_single = single[single.size() * 9 / 10];
    return t;
}

// One line per measure and launch; flushed at once, because a later measure may take the process down.
inline void print_result(const std::string& measure, int ranks, const Timing& t, bool valid) {
    std::printf(
        "{\"measure\": \"%s\", \"ranks\": %d, \"ns\": %.3f, \"min\": %.3f, \"p99\": %.3f, \"max\": %.3f, "
        "\"p90_single\": %.3f, "
        "\"per_batch\": %llu, \"batches\": %d, \"valid\": %s}\n",
        measure.c_str(), ranks, t.median, t.least, t.late, t.most, t.late_single,
        static_cast<unsigned long long>(t.per_batch), t.batches, valid ? "true" : "false");
    std::fflush(stdout);
}

}  // namespace bench
