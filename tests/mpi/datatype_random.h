// Random derived datatypes by every constructor of the standard: zero counts and blocks, negative displacements and
// bounds, large-count variants. The caller commits and frees them.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <random>
#include <utility>
#include <vector>

namespace osct {

/// Numbers in closed ranges: those of a seed, the same on every machine with this standard library, or those that
/// `draw` makes.
class Random {
  public:
    explicit Random(unsigned seed)
        : draw_([engine = std::mt19937(seed)](int low, int high) mutable {
              return std::uniform_int_distribution<int>(low, high)(engine);
          }) {}
    explicit Random(std::function<int(int, int)> draw) : draw_(std::move(draw)) {}
    int operator()(int low, int high) { return draw_(low, high); }
    std::vector<int> list(int n, int low, int high) {
        std::vector<int> values(static_cast<std::size_t>(n) + 1);
        for (int& value : values)
            value = (*this)(low, high);
        return values;
    }
    template <class T>
    std::vector<T> list_of(int n, int low, int high) {
        const std::vector<int> values = list(n, low, high);
        return {values.begin(), values.end()};
    }

  private:
    std::function<int(int, int)> draw_;
};

/// The number of constructors that construct() has. Those from kKinds on make predefined types, which are never freed.
inline constexpr int kConstructors = 26;
inline constexpr int kKinds = 23;

/// A predefined type.
inline MPI_Datatype leaf(Random& random) {
    static const MPI_Datatype leaves[] = {
        MPI_CHAR,   MPI_SHORT,           MPI_INT,  MPI_DOUBLE,          MPI_DOUBLE_INT, MPI_SHORT_INT, MPI_LONG_INT,
        MPI_INT8_T, MPI_LONG_DOUBLE_INT, MPI_2INT, MPI_C_DOUBLE_COMPLEX};
    return leaves[random(0, 10)];
}

/// Subarrays (kinds 0 and 1) and distributed arrays (2, 3), of ordinary and large counts.
inline MPI_Datatype array_type(Random& random, MPI_Datatype child, int kind) {
    const int n = random(1, 3);
    const int order = random(0, 1) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    std::vector<int> sizes = random.list(n, 1, 6);
    MPI_Datatype made = MPI_DATATYPE_NULL;
    if (kind < 2) {
        std::vector<int> subsizes(4), starts(4);
        for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
            subsizes[i] = random(1, sizes[i]);
            starts[i] = random(0, sizes[i] - subsizes[i]);
        }
        if (kind == 0) {
            MPI_Type_create_subarray(n, sizes.data(), subsizes.data(), starts.data(), order, child, &made);
        } else {
            const std::vector<MPI_Count> a(sizes.begin(), sizes.end()), b(subsizes.begin(), subsizes.end()),
                c(starts.begin(), starts.end());
            MPI_Type_create_subarray_c(n, a.data(), b.data(), c.data(), order, child, &made);
        }
        return made;
    }
    std::vector<int> distributions(4), arguments(4), grid(4);
    int processes = 1;
    for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
        const int which = random(0, 2);
        grid[i] = which == 2 ? 1 : random(1, 3);
        distributions[i] = which == 0 ? MPI_DISTRIBUTE_BLOCK : which == 1 ? MPI_DISTRIBUTE_CYCLIC : MPI_DISTRIBUTE_NONE;
        arguments[i] = MPI_DISTRIBUTE_DFLT_DARG;
        if (which == 0 && random(0, 1)) arguments[i] = (sizes[i] + grid[i] - 1) / grid[i] + random(0, 1);
        if (which == 1 && random(0, 1)) arguments[i] = random(1, 3);
        // Every process has a part: the host's own arithmetic is unreliable for empty ones.
        sizes[i] = std::max(sizes[i], grid[i] * (arguments[i] > 0 ? arguments[i] : 1));
        processes *= grid[i];
    }
    const int rank = random(0, processes - 1);
    if (kind == 2) {
        MPI_Type_create_darray(processes, rank, n, sizes.data(), distributions.data(), arguments.data(), grid.data(),
                               order, child, &made);
    } else {
        const std::vector<MPI_Count> a(sizes.begin(), sizes.end());
        MPI_Type_create_darray_c(processes, rank, n, a.data(), distributions.data(), arguments.data(), grid.data(),
                                 order, child, &made);
    }
    return made;
}

/// A type over `child` by constructor number `which`.
inline MPI_Datatype construct(Random& random, int which, MPI_Datatype child, MPI_Datatype other) {
    MPI_Datatype made = MPI_DATATYPE_NULL;
    MPI_Aint lb = 0;
    MPI_Aint extent = 0;
    MPI_Type_get_extent(child, &lb, &extent);
    const int reach = static_cast<int>(std::min<MPI_Aint>(std::abs(extent), 4000));
    const int n = random(0, 4);
    const int length = random(0, 3);
    const std::vector<int> lengths = random.list(n, 0, 3);
    const std::vector<int> places = random.list(n, -3, 8);
    const auto bytes = random.list_of<MPI_Aint>(n, -2 * reach, 6 * reach);
    const std::vector<MPI_Count> big_lengths(lengths.begin(), lengths.end());
    const std::vector<MPI_Count> big_places(places.begin(), places.end());
    const std::vector<MPI_Count> big_bytes(bytes.begin(), bytes.end());
    const MPI_Datatype types[] = {child, other, MPI_INT, child, other};
    switch (which) {
        case 0:
            MPI_Type_dup(child, &made);
            break;
        case 1:
            MPI_Type_contiguous(n, child, &made);
            break;
        case 2:
            MPI_Type_vector(n, length, random(-2, 6), child, &made);
            break;
        case 3:
            MPI_Type_create_hvector(n, length, random(-2 * reach, 6 * reach) + random(0, 3), child, &made);
            break;
        case 4:
            MPI_Type_indexed(n, lengths.data(), places.data(), child, &made);
            break;
        case 5:
            MPI_Type_create_hindexed(n, lengths.data(), bytes.data(), child, &made);
            break;
        case 6:
            MPI_Type_create_indexed_block(n, length, places.data(), child, &made);
            break;
        case 7:
            MPI_Type_create_hindexed_block(n, length, bytes.data(), child, &made);
            break;
        case 8:
            MPI_Type_create_struct(n, lengths.data(), bytes.data(), types, &made);
            break;
        case 9:
            MPI_Type_create_resized(child, random(-16, 16), random(0, 3) ? extent + random(0, 24) : random(-64, 64),
                                    &made);
            break;
        case 10:
        case 11:
        case 12:
        case 13:
            return array_type(random, child, which - 10);
        case 14:
            MPI_Type_contiguous_c(n, child, &made);
            break;
        case 15:
            MPI_Type_vector_c(n, length, random(-2, 6), child, &made);
            break;
        case 16:
            MPI_Type_create_hvector_c(n, length, random(-99, 300), child, &made);
            break;
        case 17:
            MPI_Type_indexed_c(n, big_lengths.data(), big_places.data(), child, &made);
            break;
        case 18:
            MPI_Type_create_hindexed_c(n, big_lengths.data(), big_bytes.data(), child, &made);
            break;
        case 19:
            MPI_Type_create_indexed_block_c(n, length, big_places.data(), child, &made);
            break;
        case 20:
            MPI_Type_create_hindexed_block_c(n, length, big_bytes.data(), child, &made);
            break;
        case 21:
            MPI_Type_create_struct_c(n, big_lengths.data(), big_bytes.data(), types, &made);
            break;
        case 22:
            MPI_Type_create_resized_c(child, random(-16, 16), extent + random(0, 24), &made);
            break;
        case 23:
            MPI_Type_create_f90_integer(random(1, 18), &made);
            break;
        case 24:
            MPI_Type_create_f90_real(random(1, 15), MPI_UNDEFINED, &made);
            break;
        default:
            MPI_Type_create_f90_complex(random(1, 15), MPI_UNDEFINED, &made);
            break;
    }
    return made;
}

}  // namespace osct
