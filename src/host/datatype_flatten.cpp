// Builds the layout of a derived datatype from its constructor's arguments. Bounds come from the host, which knows its
// own rules of alignment; this file computes the order and the displacements of the data (MPI 4.1 section 5.1.2 to
// 5.1.4).
#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <stdexcept>
#include <vector>

#include "host/datatype.h"
#include "host/datatype_contents.h"
#include "host/real.h"

namespace osc::host::detail {

namespace {

using abi::ArrayConstant;
using op::Layout;
using op::LayoutBuilder;

// Constructors reject negative counts.
std::size_t size_of(std::int64_t n) {
    return static_cast<std::size_t>(n);
}

// A product of arguments; one that does not fit is so far away that LayoutBuilder refuses data there.
std::int64_t product(std::int64_t a, std::int64_t b) {
    std::int64_t exact = 0;
    if (!__builtin_mul_overflow(a, b, &exact)) return exact;
    return (a < 0) == (b < 0) ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min();
}

void add_vector(LayoutBuilder& to, Contents& from, const Layout& child) {
    const bool stride_in_bytes = from.combiner() == MPI_COMBINER_HVECTOR;
    const auto count = size_of(from.count());
    const auto blocklength = size_of(from.count());
    const std::int64_t stride = stride_in_bytes ? from.address() : product(from.count(), child.extent());
    to.add_strided(0, count, blocklength, stride, child);
}

void add_indexed(LayoutBuilder& to, Contents& from, const Layout& child) {
    const int combiner = from.combiner();
    const bool one_length = combiner == MPI_COMBINER_INDEXED_BLOCK || combiner == MPI_COMBINER_HINDEXED_BLOCK;
    const bool in_bytes = combiner == MPI_COMBINER_HINDEXED || combiner == MPI_COMBINER_HINDEXED_BLOCK;
    const auto count = size_of(from.count());
    const auto lengths = one_length ? std::vector(count, from.count()) : from.counts(count);
    const auto displacements = in_bytes ? from.addresses(count) : from.counts(count);
    const std::int64_t unit = in_bytes ? 1 : child.extent();
    for (std::size_t i = 0; i < count; ++i)
        to.add(product(displacements[i], unit), size_of(lengths[i]), child);
}

// Many members often share few types, and flattening each again would grow exponentially with the depth of nesting.
void add_struct(LayoutBuilder& to, Contents& from) {
    const auto count = size_of(from.count());
    const auto lengths = from.counts(count);
    const auto displacements = from.addresses(count);
    std::map<std::uint64_t, Layout> known;
    if (from.types().size() != count) throw std::invalid_argument("struct");
    for (std::size_t i = 0; i < count; ++i) {
        if (lengths[i] == 0) continue;
        const auto [entry, is_new] = known.try_emplace(abi::handle_key(from.types()[i]));
        if (is_new) entry->second = flatten(from.types()[i]);
        to.add(displacements[i], size_of(lengths[i]), entry->second);
    }
}

// One dimension of an array: the selected ones of its `size` lines, each described by `line`.
struct Dimension {
    std::int64_t size;
    std::int64_t first;   // the first block of lines starts here,
    std::int64_t length;  // has this many lines,
    std::int64_t period;  // and blocks repeat at this distance up to the end; the last may be shorter
};

Layout take(const Dimension& dimension, const Layout& line) {
    const std::int64_t extent = line.extent();
    LayoutBuilder builder;
    if (dimension.first < dimension.size && dimension.length > 0) {
        const std::int64_t whole = (dimension.size - dimension.first) / dimension.period;
        const std::int64_t rest = (dimension.size - dimension.first) % dimension.period;
        const std::int64_t full = whole + (rest >= dimension.length ? 1 : 0);
        builder.add_strided(product(dimension.first, extent), size_of(full), size_of(dimension.length),
                            product(dimension.period, extent), line);
        if (rest > 0 && rest < dimension.length)
            builder.add(product(dimension.first + whole * dimension.period, extent), size_of(rest), line);
    }
    return builder.finish(product(dimension.size, extent));
}

// The dimension that varies fastest is the innermost line: the first in Fortran, the last in C.
Layout take_all(std::vector<Dimension> dimensions, bool fortran, Layout line) {
    if (!fortran) std::reverse(dimensions.begin(), dimensions.end());
    for (const Dimension& dimension : dimensions)
        line = take(dimension, line);
    return line;
}

Layout subarray(Contents& from, const Layout& child) {
    const auto n = size_of(from.integer());
    const auto sizes = from.counts(n);
    const auto subsizes = from.counts(n);
    const auto starts = from.counts(n);
    const bool fortran = abi::array_constant(ArrayConstant::Order, from.integer()) == MPI_ORDER_FORTRAN;
    std::vector<Dimension> dimensions;
    for (std::size_t i = 0; i < n; ++i) {
        const std::int64_t beyond = std::max<std::int64_t>(sizes[i], 1);  // one block only
        dimensions.push_back({sizes[i], starts[i], subsizes[i], beyond});
    }
    return take_all(std::move(dimensions), fortran, child);
}

Dimension distributed(std::int64_t size, std::int64_t distribution, std::int64_t argument, std::int64_t processes,
                      std::int64_t process) {
    argument = abi::array_constant(ArrayConstant::Argument, argument);
    switch (abi::array_constant(ArrayConstant::Distribution, distribution)) {
        case MPI_DISTRIBUTE_BLOCK: {
            const std::int64_t block =
                argument == MPI_DISTRIBUTE_DFLT_DARG ? size / processes + (size % processes != 0 ? 1 : 0) : argument;
            const std::int64_t first = std::min(product(process, block), size);
            return {size, first, std::min(block, size - first), std::max<std::int64_t>(size, 1)};
        }
        case MPI_DISTRIBUTE_CYCLIC: {
            const std::int64_t block = argument == MPI_DISTRIBUTE_DFLT_DARG ? 1 : argument;
            return {size, product(process, block), block, product(processes, block)};
        }
        default:
            return {size, 0, size, std::max<std::int64_t>(size, 1)};
    }
}

Layout darray(Contents& from, const Layout& child) {
    std::int64_t processes = from.integer();
    std::int64_t rank = from.integer();
    const auto n = size_of(from.integer());
    const auto sizes = from.counts(n);
    const auto distributions = from.integers(n);
    const auto arguments = from.integers(n);
    const auto grid = from.integers(n);
    const bool fortran = abi::array_constant(ArrayConstant::Order, from.integer()) == MPI_ORDER_FORTRAN;
    std::vector<Dimension> dimensions;
    // The grid of processes is in C's order whatever the array's is.
    for (std::size_t i = 0; i < n; ++i) {
        processes /= grid[i];
        dimensions.push_back(distributed(sizes[i], distributions[i], arguments[i], grid[i], rank / processes));
        rank %= processes;
    }
    return take_all(std::move(dimensions), fortran, child);
}

// MPI_Type_create_f90_*: predefined types without a name of their own, distinguished by size.
Layout of_kind(MPI_Datatype type, int combiner) {
    struct Kind {
        int combiner;
        int bytes;
        Basic basic;
    };
    // Of the two real types in 16 bytes, hosts choose C's long double.
    static constexpr Kind kinds[] = {
        {MPI_COMBINER_F90_INTEGER, 1, Basic::I8},
        {MPI_COMBINER_F90_INTEGER, 2, Basic::I16},
        {MPI_COMBINER_F90_INTEGER, 4, Basic::I32},
        {MPI_COMBINER_F90_INTEGER, 8, Basic::I64},
        {MPI_COMBINER_F90_INTEGER, 16, Basic::I128},
        {MPI_COMBINER_F90_REAL, 2, Basic::F16},
        {MPI_COMBINER_F90_REAL, 4, Basic::F32},
        {MPI_COMBINER_F90_REAL, 8, Basic::F64},
        {MPI_COMBINER_F90_REAL, 16, Basic::LongDouble},
        {MPI_COMBINER_F90_COMPLEX, 4, Basic::C16},
        {MPI_COMBINER_F90_COMPLEX, 8, Basic::C32},
        {MPI_COMBINER_F90_COMPLEX, 16, Basic::C64},
        {MPI_COMBINER_F90_COMPLEX, 32, Basic::CLongDouble},
    };
    int bytes = 0;
    real().Type_size(type, &bytes);
    for (const Kind& kind : kinds)
        if (kind.combiner == combiner && kind.bytes == bytes) return Layout::leaf(kind.basic);
    throw std::invalid_argument("kind");
}

void rebuild(LayoutBuilder& to, Contents& from) {
    switch (from.combiner()) {
        case MPI_COMBINER_DUP:
        case MPI_COMBINER_RESIZED:
            return to.add(0, 1, flatten(from.type()));
        case MPI_COMBINER_CONTIGUOUS:
            return to.add(0, size_of(from.count()), flatten(from.type()));
        case MPI_COMBINER_VECTOR:
        case MPI_COMBINER_HVECTOR:
            return add_vector(to, from, flatten(from.type()));
        case MPI_COMBINER_INDEXED:
        case MPI_COMBINER_HINDEXED:
        case MPI_COMBINER_INDEXED_BLOCK:
        case MPI_COMBINER_HINDEXED_BLOCK:
            return add_indexed(to, from, flatten(from.type()));
        case MPI_COMBINER_STRUCT:
            return add_struct(to, from);
        case MPI_COMBINER_SUBARRAY:
            return to.add(0, 1, subarray(from, flatten(from.type())));
        case MPI_COMBINER_DARRAY:
            return to.add(0, 1, darray(from, flatten(from.type())));
        default:
            throw std::invalid_argument("combiner");
    }
}

}  // namespace

Layout flatten(MPI_Datatype type) {
    if (const TypeInfo* info = abi::predefined(type)) return info->layout;
    if (const TypeInfo* info = g_types.find(abi::handle_key(type))) return info->layout;
    Contents contents(type);
    if (is_unnamed(contents.combiner())) return of_kind(type, contents.combiner());
    LayoutBuilder builder;
    rebuild(builder, contents);
    MPI_Aint lb = 0;
    MPI_Aint extent = 0;
    if (real().Type_get_extent(type, &lb, &extent) != MPI_SUCCESS) throw std::invalid_argument("extent");
    return builder.finish(extent);
}

}  // namespace osc::host::detail
