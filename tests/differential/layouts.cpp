// Makes datatypes and lists their elements.
#include "layouts.h"

#include <algorithm>

namespace diff {
namespace {

// A datatype under construction: the handle, and the elements of one instance.
struct Made {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    std::vector<std::ptrdiff_t> at;
};

// The first `count` numbers of a random walk through [0, ...) that leaves gaps: places of blocks, in random order.
std::vector<int> places(const std::vector<int>& lengths, Random& random) {
    std::vector<int> starts(lengths.size());
    std::vector<std::size_t> order(lengths.size());
    for (std::size_t i = 0; i < order.size(); ++i)
        order[i] = i;
    if (random.once_in(3)) random.shuffle(order);
    int next = random.between(0, 2);
    for (const std::size_t i : order) {
        starts[i] = next;
        next += lengths[i] + random.between(0, 3);
    }
    return starts;
}

// `total` split into blocks; some are empty.
std::vector<int> blocks_of(int total, Random& random) {
    std::vector<int> lengths;
    const bool fine = random.once_in(2);
    while (total > 0) {
        if (random.once_in(8)) lengths.push_back(0);
        const int length = fine ? 1 : random.between(1, total);
        lengths.push_back(length);
        total -= length;
    }
    return lengths;
}

void add_blocks(Made& made, const std::vector<int>& lengths, const std::vector<int>& starts, std::ptrdiff_t width) {
    for (std::size_t i = 0; i < lengths.size(); ++i)
        for (int k = 0; k < lengths[i]; ++k)
            made.at.push_back((starts[i] + k) * width);
}

Made make_vector(const Basic& basic, int elements, Random& random) {
    Made made;
    int length = 1;
    for (const int l : {4, 3, 2})
        if (elements % l == 0 && random.once_in(2)) length = l;
    const int blocks = elements / length;
    const int stride = (length + random.between(0, 3)) * (random.once_in(6) ? -1 : 1);
    const auto width = static_cast<std::ptrdiff_t>(basic.width);
    if (random.once_in(2)) {
        MPI_Type_vector(blocks, length, stride, basic.type, &made.type);
    } else {
        MPI_Type_create_hvector(blocks, length, stride * width, basic.type, &made.type);
    }
    for (int i = 0; i < blocks; ++i)
        for (int k = 0; k < length; ++k)
            made.at.push_back((i * stride + k) * width);
    return made;
}

Made make_indexed(const Basic& basic, int elements, Random& random) {
    Made made;
    const auto width = static_cast<std::ptrdiff_t>(basic.width);
    std::vector<int> lengths = blocks_of(elements, random);
    const bool equal = random.once_in(4);
    if (equal) lengths.assign(static_cast<std::size_t>(elements), 1);
    const std::vector<int> starts = places(lengths, random);
    const int blocks = static_cast<int>(lengths.size());
    std::vector<MPI_Aint> bytes;
    for (const int start : starts)
        bytes.push_back(start * width);
    if (equal) {
        MPI_Type_create_indexed_block(blocks, 1, starts.data(), basic.type, &made.type);
    } else if (random.once_in(2)) {
        MPI_Type_indexed(blocks, lengths.data(), starts.data(), basic.type, &made.type);
    } else {
        MPI_Type_create_hindexed(blocks, lengths.data(), bytes.data(), basic.type, &made.type);
    }
    add_blocks(made, lengths, starts, width);
    return made;
}

Made make_struct(const Basic& basic, int elements, Random& random) {
    Made made;
    const auto width = static_cast<std::ptrdiff_t>(basic.width);
    const std::vector<int> lengths = blocks_of(elements, random);
    const std::vector<int> starts = places(lengths, random);
    std::vector<MPI_Aint> bytes;
    std::vector<MPI_Datatype> types;
    std::vector<int> counts;
    std::vector<MPI_Datatype> children;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        bytes.push_back(starts[i] * width);
        if (lengths[i] > 1 && children.size() < 4 && random.once_in(3)) {
            children.emplace_back();
            MPI_Type_contiguous(lengths[i], basic.type, &children.back());
            types.push_back(children.back());
            counts.push_back(1);
        } else {
            types.push_back(basic.type);
            counts.push_back(lengths[i]);
        }
    }
    MPI_Type_create_struct(static_cast<int>(lengths.size()), counts.data(), bytes.data(), types.data(), &made.type);
    for (MPI_Datatype& child : children)
        MPI_Type_free(&child);
    add_blocks(made, lengths, starts, width);
    return made;
}

Made make_subarray(const Basic& basic, int elements, Random& random) {
    Made made;
    int inner = 1;
    for (const int k : {2, 3, 4, 6})
        if (elements % k == 0 && random.once_in(2)) inner = k;
    const int part[2] = {elements / inner, inner};
    const int start[2] = {random.between(0, 2), random.between(0, 2)};
    const int whole[2] = {start[0] + part[0] + random.between(0, 1), start[1] + part[1] + random.between(0, 2)};
    const bool c = random.once_in(2);
    MPI_Type_create_subarray(2, whole, part, start, c ? MPI_ORDER_C : MPI_ORDER_FORTRAN, basic.type, &made.type);
    const int slow = c ? 0 : 1;
    const int fast = 1 - slow;
    for (int i = 0; i < part[slow]; ++i)
        for (int k = 0; k < part[fast]; ++k)
            made.at.push_back(((start[slow] + i) * whole[fast] + start[fast] + k) *
                              static_cast<std::ptrdiff_t>(basic.width));
    return made;
}

// Another extent, a lower bound that is not the data's, and data before the origin of the type.
Made make_resized(const Basic& basic, int elements, Random& random) {
    const auto width = static_cast<std::ptrdiff_t>(basic.width);
    Made inner;
    if (random.once_in(2)) {
        const MPI_Aint first = -width * random.between(0, 3);
        MPI_Type_create_hindexed(1, &elements, &first, basic.type, &inner.type);
        for (int i = 0; i < elements; ++i)
            inner.at.push_back(first + i * width);
    } else {
        inner = make_vector(basic, elements, random);
    }
    const auto [low, high] = std::minmax_element(inner.at.begin(), inner.at.end());
    const MPI_Aint extent = *high - *low + width * random.between(1, 3);
    Made made;
    made.at = inner.at;
    MPI_Type_create_resized(inner.type, *low - width * random.between(0, 2), extent, &made.type);
    MPI_Type_free(&inner.type);
    return made;
}

Made make_instance(const Basic& basic, Shape shape, int elements, Random& random) {
    switch (shape) {
        case Shape::Vector:
            return make_vector(basic, elements, random);
        case Shape::Indexed:
            return make_indexed(basic, elements, random);
        case Shape::Struct:
            return make_struct(basic, elements, random);
        case Shape::Subarray:
            return make_subarray(basic, elements, random);
        default:
            return make_resized(basic, elements, random);
    }
}

bool overlaps(std::vector<std::ptrdiff_t> at, std::ptrdiff_t width) {
    std::sort(at.begin(), at.end());
    for (std::size_t i = 1; i < at.size(); ++i)
        if (at[i] < at[i - 1] + width) return true;
    return false;
}

void repeat(Layout& layout, const Made& made, int count) {
    MPI_Aint low = 0;
    MPI_Aint extent = 0;
    MPI_Type_get_extent(made.type, &low, &extent);
    layout.at.clear();
    for (int i = 0; i < count; ++i)
        for (const std::ptrdiff_t at : made.at)
            layout.at.push_back(at + i * extent);
}

}  // namespace

const char* name_of(Shape shape) {
    static const char* const names[] = {"basic", "vector", "indexed", "struct", "subarray", "resized", "mixed", "pair"};
    return names[static_cast<std::size_t>(shape)];
}

void Layout::release() {
    if (derived) MPI_Type_free(&type);
    derived = false;
}

Layout make_layout(const Basic& basic, Shape shape, std::size_t elements, Random& random) {
    Layout layout;
    layout.shape = shape;
    const auto width = static_cast<std::ptrdiff_t>(basic.width);
    if (shape == Shape::Plain) {
        layout.type = basic.type;
        layout.count = static_cast<int>(elements);
        repeat(layout, {basic.type, {0}}, layout.count);
    } else {
        layout.count = 1;
        for (const int count : {2, 3, 4, 12})
            if (elements % static_cast<std::size_t>(count) == 0 && random.once_in(3)) layout.count = count;
        for (;;) {
            const int each = static_cast<int>(elements) / layout.count;
            const Made made = make_instance(basic, shape, each, random);
            repeat(layout, made, layout.count);
            layout.type = made.type;
            if (!overlaps(layout.at, width)) break;
            MPI_Type_free(&layout.type);
            layout.count = 1;
        }
        MPI_Type_commit(&layout.type);
        layout.derived = true;
    }
    layout.low = *std::min_element(layout.at.begin(), layout.at.end());
    layout.high = *std::max_element(layout.at.begin(), layout.at.end()) + width;
    return layout;
}

}  // namespace diff
