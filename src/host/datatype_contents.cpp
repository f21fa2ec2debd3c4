// Reads a datatype's constructor from the host.
#include "host/datatype_contents.h"

#include <stdexcept>
#include <utility>

#include "host/datatype.h"
#include "host/real.h"

namespace osc::host::detail {

namespace {

[[noreturn]] void refuse() {
    throw std::invalid_argument("the host does not tell what a datatype is made of");
}

// One element more than needed, because hosts refuse null arrays even if they store nothing.
template <class T, class N>
std::vector<T> room(N n) {
    return std::vector<T>(static_cast<std::size_t>(n) + 1);
}

// Hosts before MPI 4.0 have no large counts.
bool has_large_counts() {
    return real().Type_get_envelope_c && real().Type_get_contents_c;
}

// How many arguments of each kind a constructor had.
struct Envelope {
    MPI_Count integers = 0;
    MPI_Count addresses = 0;
    MPI_Count large = 0;
    MPI_Count types = 0;
    int combiner = MPI_COMBINER_NAMED;
};

Envelope envelope_of(MPI_Datatype type) {
    Envelope found;
    int error = MPI_SUCCESS;
    if (has_large_counts()) {
        error = real().Type_get_envelope_c(type, &found.integers, &found.addresses, &found.large, &found.types,
                                           &found.combiner);
    } else {
        int n[3] = {};
        error = real().Type_get_envelope(type, &n[0], &n[1], &n[2], &found.combiner);
        found = {n[0], n[1], 0, n[2], found.combiner};
    }
    if (error != MPI_SUCCESS) refuse();
    return found;
}

// Predefined types, named or made by MPI_Type_create_f90_*, are not returned as new references.
bool is_reference(MPI_Datatype type) {
    if (abi::predefined(type)) return false;
    const int combiner = combiner_of(type);
    return combiner != MPI_COMBINER_NAMED && !is_unnamed(combiner);
}

}  // namespace

int combiner_of(MPI_Datatype type) {
    return envelope_of(type).combiner;
}

bool is_unnamed(int combiner) {
    return combiner == MPI_COMBINER_F90_INTEGER || combiner == MPI_COMBINER_F90_REAL ||
           combiner == MPI_COMBINER_F90_COMPLEX;
}

Contents::Contents(MPI_Datatype type) {
    const Envelope n = envelope_of(type);
    combiner_ = n.combiner;
    if (combiner_ == MPI_COMBINER_NAMED) return;
    auto integers = room<int>(n.integers);
    auto addresses = room<MPI_Aint>(n.addresses);
    auto large = room<MPI_Count>(n.large);
    types_ = room<MPI_Datatype>(n.types);
    const int error =
        has_large_counts()
            ? real().Type_get_contents_c(type, n.integers, n.addresses, n.large, n.types, integers.data(),
                                         addresses.data(), large.data(), types_.data())
            : real().Type_get_contents(type, static_cast<int>(n.integers), static_cast<int>(n.addresses),
                                       static_cast<int>(n.types), integers.data(), addresses.data(), types_.data());
    if (error != MPI_SUCCESS) refuse();
    types_.resize(static_cast<std::size_t>(n.types));
    integers_.assign(integers, static_cast<std::size_t>(n.integers));
    displacements_.assign(addresses, static_cast<std::size_t>(n.addresses));
    large_.assign(large, static_cast<std::size_t>(n.large));
    if (!large_.empty()) counts_ = addresses_ = &large_;
    const int modern = abi::modern_combiner(combiner_);
    if (std::exchange(combiner_, modern) != modern) addresses_ = &integers_;
}

Contents::~Contents() {
    for (MPI_Datatype& type : types_) {
        // The host refuses the type's envelope; free the reference all the same.
        try {
            if (is_reference(type)) real().Type_free(&type);
        } catch (const std::invalid_argument&) {
            continue;
        }
    }
}

MPI_Datatype Contents::type() const {
    if (types_.size() != 1) refuse();
    return types_.front();
}

std::int64_t Contents::List::next() {
    if (position_ == values_.size()) refuse();
    return values_[position_++];
}

std::vector<std::int64_t> Contents::List::next(std::size_t n) {
    if (n > values_.size() - position_) refuse();
    const auto first = values_.begin() + static_cast<std::ptrdiff_t>(std::exchange(position_, position_ + n));
    return {first, first + static_cast<std::ptrdiff_t>(n)};
}

}  // namespace osc::host::detail
