// Operations on shapes: a contiguous array at the origin; a vector, an unstructured halo or a part of a matrix at the
// target; each followed by its flush.
#include <algorithm>
#include <cstring>
#include <random>

#include "measures.h"
#include "windows.h"

namespace bench {
namespace {

enum class Shape { vector, pages, indexed, rows };
constexpr struct {
    Shape shape;
    const char* name;
} kShapes[] = {{Shape::vector, "vector"}, {Shape::pages, "pages"}, {Shape::indexed, "indexed"}, {Shape::rows, "rows"}};
constexpr struct {
    char kind;
    const char* name;
} kOperations[] = {{'p', "put"}, {'g', "get"}, {'a', "acc"}};

// A datatype of doubles, and where each of them is.
struct Type {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    std::vector<std::size_t> places;

    Type(Shape shape, int pieces);
    ~Type() { MPI_Type_free(&type); }
    Type(const Type&) = delete;
    Type& operator=(const Type&) = delete;
    // In allocated windows whose size is no multiple of 16, MPICH 4.0.2 puts elsewhere than the owner reads.
    std::size_t bytes() const { return (places.back() + 1) * sizeof(double) / 4096 * 4096 + 4096; }

  private:
    void blocks(int count, int length, int stride) {
        for (int i = 0; i < count * length; ++i)
            places.push_back(static_cast<std::size_t>(i / length * stride + i % length));
    }
};

Type::Type(Shape shape, int pieces) {
    switch (shape) {
        case Shape::vector:
            MPI_Type_vector(pieces, 1, 2, MPI_DOUBLE, &type);
            blocks(pieces, 1, 2);
            break;
        case Shape::pages:
            MPI_Type_vector(pieces, 1, 512, MPI_DOUBLE, &type);
            blocks(pieces, 1, 512);
            break;
        case Shape::rows: {
            const int sizes[] = {pieces, 64};
            const int part[] = {pieces, 32};
            const int first[] = {0, 0};
            MPI_Type_create_subarray(2, sizes, part, first, MPI_ORDER_C, MPI_DOUBLE, &type);
            blocks(pieces, 32, 64);
            break;
        }
        case Shape::indexed: {
            std::mt19937 random(kSeed);
            std::vector<int> lengths, first;
            int next = 0;
            for (int i = 0; i < pieces; ++i) {
                lengths.push_back(1 + static_cast<int>(random() % 3));
                first.push_back(next);
                for (int k = 0; k < lengths.back(); ++k)
                    places.push_back(static_cast<std::size_t>(next + k));
                next += lengths.back() + 1 + static_cast<int>(random() % 4);
            }
            MPI_Type_indexed(pieces, lengths.data(), first.data(), MPI_DOUBLE, &type);
            break;
        }
    }
    MPI_Type_commit(&type);
}

void run_shape(const Context& c, const std::string& name, Flavour flavour, char kind, Shape shape, int pieces) {
    const Type there(shape, pieces);
    WindowSet set(flavour, 1, there.bytes(), c.comm);
    const MPI_Win win = set.window(0);
    const MPI_Aint at = set.origin_of(0, kTarget);
    const int count = static_cast<int>(there.places.size());
    std::vector<double> mine(there.places.size(), kind == 'a' ? 1.0 : 0.0);
    for (std::size_t i = 0; kind == 'p' && i < mine.size(); ++i)
        mine[i] = static_cast<double>(i);
    const auto put_all = [&](double* memory) {
        for (std::size_t i = 0; i < there.places.size(); ++i)
            memory[there.places[i]] = static_cast<double>(i) + 1;
    };
    if (c.target() && kind == 'g') {
        set.own_begin();
        put_all(reinterpret_cast<double*>(set.memory(0)));
        set.own_end();
    }
    MPI_Barrier(c.comm);
    std::uint64_t laps = 0;
    Timing timing;
    if (c.origin()) {
        set.lock_all();
        timing = timed(c.budget, 1, [&](std::uint64_t n) {
            for (; n > 0; --n, ++laps) {
                if (kind == 'p') {
                    mine.front() = mine.back() = static_cast<double>(laps);
                    MPI_Put(mine.data(), count, MPI_DOUBLE, kTarget, at, 1, there.type, win);
                } else if (kind == 'g') {
                    MPI_Get(mine.data(), count, MPI_DOUBLE, kTarget, at, 1, there.type, win);
                } else {
                    MPI_Accumulate(mine.data(), count, MPI_DOUBLE, kTarget, at, 1, there.type, MPI_SUM, win);
                }
                MPI_Win_flush(kTarget, win);
            }
        });
        set.unlock_all();
    }
    MPI_Barrier(c.comm);
    laps = c.agree(laps);
    bool right = true;
    if (c.origin() && kind == 'g')
        for (std::size_t i = 0; i < mine.size(); ++i)
            right = right && mine[i] == static_cast<double>(i) + 1;
    if (c.target()) {
        std::vector<double> expected(there.places.back() + 1, 0.0);
        if (kind == 'g') put_all(expected.data());
        for (std::size_t i = 0; i < there.places.size(); ++i) {
            double& value = expected[there.places[i]];
            if (kind == 'a') value = static_cast<double>(laps);
            if (kind == 'p') value = static_cast<double>(i == 0 || i + 1 == there.places.size() ? laps - 1 : i);
        }
        set.own_begin();
        right = std::memcmp(expected.data(), set.memory(0), expected.size() * sizeof(double)) == 0;
        set.own_end();
    }
    c.report(name, timing, right);
}

}  // namespace

void add_shape_measures(Measures& list) {
    for (const Flavour flavour : {Flavour::allocate, Flavour::malloc, Flavour::dynamic})
        for (const auto& operation : kOperations)
            for (const auto& shape : kShapes)
                for (const int pieces : {4, 16, 64, 256, 1000})
                    list.push_back({std::string(operation.name) + "_" + shape.name + std::to_string(pieces) + "." +
                                        name_of(flavour),
                                    [=](const Context& c, const std::string& name) {
                                        run_shape(c, name, flavour, operation.kind, shape.shape, pieces);
                                    }});
}

}  // namespace bench
