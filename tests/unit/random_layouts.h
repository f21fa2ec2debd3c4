// Layouts beside plain lists of their bytes, and random ones of both.
#pragma once

#include <array>
#include <cstddef>
#include <random>
#include <vector>

#include "op/cursor.h"
#include "op/layout.h"

namespace osc::test {

using namespace osc::op;

/// A layout and, independent of it, the displacement of each of its bytes in typemap order.
struct Model {
    Layout layout;
    std::vector<std::ptrdiff_t> bytes;
};

inline Model leaf(Basic basic) {
    Model model{Layout::leaf(basic), {}};
    const DataRuns data = data_runs(basic);
    for (std::size_t i = 0; i < data.count; ++i)
        for (std::size_t j = 0; j < data.run[i].size; ++j)
            model.bytes.push_back(static_cast<std::ptrdiff_t>(data.run[i].offset + j));
    return model;
}

inline void append(std::vector<std::ptrdiff_t>& to, std::ptrdiff_t disp, std::size_t count, const Model& child) {
    for (std::size_t i = 0; i < count; ++i)
        for (const std::ptrdiff_t byte : child.bytes)
            to.push_back(disp + static_cast<std::ptrdiff_t>(i) * child.layout.extent() + byte);
}

inline Model strided(std::size_t count, std::size_t blocklength, std::ptrdiff_t stride, const Model& child,
                     std::ptrdiff_t extent) {
    Model model;
    LayoutBuilder builder;
    builder.add_strided(0, count, blocklength, stride, child.layout);
    for (std::size_t i = 0; i < count; ++i)
        append(model.bytes, static_cast<std::ptrdiff_t>(i) * stride, blocklength, child);
    model.layout = builder.finish(extent);
    return model;
}

inline std::vector<std::ptrdiff_t> all_bytes(const Model& model, std::size_t count) {
    std::vector<std::ptrdiff_t> bytes;
    append(bytes, 0, count, model);
    return bytes;
}

inline std::vector<std::ptrdiff_t> walked(Cursor cursor) {
    std::vector<std::ptrdiff_t> bytes;
    while (!cursor.done()) {
        for (std::size_t i = 0; i < cursor.bytes(); ++i)
            bytes.push_back(cursor.offset() + static_cast<long>(i));
        cursor.advance(cursor.bytes());
    }
    return bytes;
}

/// A random layout; nested up to `depth` deep.
inline Model random_model(std::mt19937& random, int depth) {
    const auto pick = [&random](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    if (depth == 0) {
        static constexpr Basic basics[] = {Basic::U8,  Basic::I16,       Basic::I32,      Basic::F64,
                                           Basic::C64, Basic::DoubleInt, Basic::ShortInt, Basic::LongDoubleInt};
        return leaf(basics[pick(0, 7)]);
    }
    Model model;
    LayoutBuilder builder;
    const int parts = pick(0, 4);
    for (int part = 0; part < parts; ++part) {
        const Model child = random_model(random, depth - 1);
        const std::ptrdiff_t disp = pick(-64, 64);
        const auto count = static_cast<std::size_t>(pick(0, 4));
        const auto blocklength = static_cast<std::size_t>(pick(0, 3));
        const std::ptrdiff_t stride =
            pick(0, 2) == 0 ? child.layout.extent() * static_cast<std::ptrdiff_t>(blocklength) : pick(-40, 80);
        builder.add_strided(disp, count, blocklength, stride, child.layout);
        for (std::size_t i = 0; i < count; ++i)
            append(model.bytes, disp + static_cast<std::ptrdiff_t>(i) * stride, blocklength, child);
    }
    std::ptrdiff_t end = 0;
    if (!model.bytes.empty()) end = model.bytes.back() + 1 - model.bytes.front();
    model.layout = builder.finish(pick(0, 1) == 0 ? end : pick(-50, 200));
    return model;
}

}  // namespace osc::test
