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

// Predefined types, named or made by MPI_Type_create_f90_*, are not returned as new references.
bool is_reference(MPI_Datatype type) {
    return !abi::predefined(type) && combiner_of(type) != MPI_COMBINER_NAMED && !is_unnamed(type);
}

// Hosts before MPI 4.0 have no large counts.
bool has_large_counts() {
    return real().Type_get_envelope_c && real().Type_get_contents_c;
}

}  // namespace

int combiner_of(MPI_Datatype type) {
    int combiner = MPI_COMBINER_NAMED;
    int error = MPI_SUCCESS;
    if (has_large_counts()) {
        MPI_Count n[4] = {};
        error = real().Type_get_envelope_c(type, &n[0], &n[1], &n[2], &n[3], &combiner);
    } else {
        int n[3] = {};
        error = real().Type_get_envelope(type, &n[0], &n[1], &n[2], &combiner);
    }
    if (error != MPI_SUCCESS) refuse();
    return combiner;
}

bool is_unnamed(MPI_Datatype type) {
    const int combiner = combiner_of(type);
    return combiner == MPI_COMBINER_F90_INTEGER || combiner == MPI_COMBINER_F90_REAL ||
           combiner == MPI_COMBINER_F90_COMPLEX;
}

Contents::Contents(MPI_Datatype type) {
    if (has_large_counts())
        fetch_large(type);
    else
        fetch_small(type);
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

void Contents::fetch_large(MPI_Datatype type) {
    MPI_Count ni = 0;
    MPI_Count na = 0;
    MPI_Count nl = 0;
    MPI_Count nt = 0;
    if (real().Type_get_envelope_c(type, &ni, &na, &nl, &nt, &combiner_) != MPI_SUCCESS) refuse();
    if (combiner_ == MPI_COMBINER_NAMED) return;
    auto integers = room<int>(ni);
    auto addresses = room<MPI_Aint>(na);
    auto large = room<MPI_Count>(nl);
    types_ = room<MPI_Datatype>(nt);
    const int error = real().Type_get_contents_c(type, ni, na, nl, nt, integers.data(), addresses.data(), large.data(),
                                                 types_.data());
    types_.resize(error == MPI_SUCCESS ? static_cast<std::size_t>(nt) : 0);
    if (error != MPI_SUCCESS) refuse();
    integers_.assign(integers, static_cast<std::size_t>(ni));
    displacements_.assign(addresses, static_cast<std::size_t>(na));
    large_.assign(large, static_cast<std::size_t>(nl));
}

void Contents::fetch_small(MPI_Datatype type) {
    int ni = 0;
    int na = 0;
    int nt = 0;
    if (real().Type_get_envelope(type, &ni, &na, &nt, &combiner_) != MPI_SUCCESS) refuse();
    if (combiner_ == MPI_COMBINER_NAMED) return;
    auto integers = room<int>(ni);
    auto addresses = room<MPI_Aint>(na);
    types_ = room<MPI_Datatype>(nt);
    const int error = real().Type_get_contents(type, ni, na, nt, integers.data(), addresses.data(), types_.data());
    types_.resize(error == MPI_SUCCESS ? static_cast<std::size_t>(nt) : 0);
    if (error != MPI_SUCCESS) refuse();
    integers_.assign(integers, static_cast<std::size_t>(ni));
    displacements_.assign(addresses, static_cast<std::size_t>(na));
}

}  // namespace osc::host::detail
