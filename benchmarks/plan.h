// Where each operation of a timed loop goes: a plan is a short cycle of (window, offset) steps that every process of a
// measure can rebuild from the same seed. "Hot" plans hit one place; "rotating" plans go round many windows at random
// offsets, so that one cached window or one cached line wins nothing.
// Steps never overlap, so how often each was run, and hence what its bytes must hold, follows from the total alone:
// results are checked exactly without bookkeeping inside the loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace bench {

inline constexpr int kRotatedWindows = 64;

struct Step {
    std::uint32_t window;
    std::uint32_t offset;
};

struct Plan {
    int windows = 1;
    std::size_t window_bytes = 0;
    std::vector<Step> steps;

    // How many of `total` consecutive operations were step k.
    std::uint64_t runs_of(std::size_t k, std::uint64_t total) const {
        return total / steps.size() + (k < total % steps.size() ? 1 : 0);
    }
};

inline Plan hot_plan(std::size_t window_bytes) {
    return Plan{1, window_bytes, {Step{0, 0}}};
}

// Each window is cut into equal parts, one per step that goes there; the step lies at a random multiple of 8 in its
// part. The caller makes the parts larger than `bytes`.
inline Plan rotating_plan(std::size_t window_bytes, std::size_t bytes, std::size_t steps_per_window,
                          std::uint64_t seed) {
    Plan plan{kRotatedWindows, window_bytes, {}};
    std::mt19937_64 random(seed);
    const std::size_t part = window_bytes / steps_per_window;
    std::uniform_int_distribution<std::size_t> place(0, (part - bytes) / 8);
    for (std::size_t turn = 0; turn < steps_per_window; ++turn) {
        for (int w = 0; w < plan.windows; ++w) {
            // Parts are visited in a different order per window, so that the stride between steps is not constant.
            const std::size_t index = (turn * 7 + static_cast<std::size_t>(w) * 5) % steps_per_window;
            plan.steps.push_back(
                {static_cast<std::uint32_t>(w), static_cast<std::uint32_t>(index * part + place(random) * 8)});
        }
    }
    return plan;
}

// Position in a plan that runs on over warm-up and batches: `step` is the index, `lap` how often it ran before.
struct Cursor {
    std::size_t step = 0;
    std::uint64_t lap = 0;
    std::uint64_t total = 0;

    void advance(std::size_t steps) {
        ++total;
        if (++step == steps) {
            step = 0;
            ++lap;
        }
    }
};

// The word that operation number `lap` of step `k` writes: names both, so that a misplaced or stale write shows.
inline std::uint64_t stamp(std::size_t k, std::uint64_t lap) {
    return (static_cast<std::uint64_t>(k) + 1) << 40 | (lap + 1);
}

}  // namespace bench
