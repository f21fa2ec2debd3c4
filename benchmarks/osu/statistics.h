// What a row says about its batches: the median and the quartiles.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace osu {

inline constexpr int kBatches = 9;

// Rounded up, so that no batch is empty.
inline long per_batch(long iterations) {
    return (iterations + kBatches - 1) / kBatches;
}

struct Summary {
    double low = 0;  // the first quartile
    double median = 0;
    double high = 0;  // the third
};

inline Summary summarise(std::vector<double> batches) {
    std::sort(batches.begin(), batches.end());
    const auto at = [&](double share) {
        const double place = share * static_cast<double>(batches.size() - 1);
        const auto below = static_cast<std::size_t>(place);
        const std::size_t above = std::min(below + 1, batches.size() - 1);
        return batches[below] + (batches[above] - batches[below]) * (place - static_cast<double>(below));
    };
    return {at(0.25), at(0.5), at(0.75)};
}

// A figure that was taken once.
inline Summary single(double value) {
    return {value, value, value};
}

// The same batches as another figure: in another unit, or as a rate, where a longer time is a smaller figure.
inline Summary scaled(const Summary& s, double scale) {
    return {s.low * scale, s.median * scale, s.high * scale};
}
inline Summary inverted(const Summary& s, double scale) {
    return {scale / s.high, scale / s.median, scale / s.low};
}

}  // namespace osu
