// The constructor's arguments of a derived datatype, by MPI_Type_get_envelope and MPI_Type_get_contents (MPI 4.1
// section 5.1.13). Owns the datatype handles that the host returns with them.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace osc::host::detail {

/// The combiner of a datatype. Throws std::invalid_argument if the host refuses.
int combiner_of(MPI_Datatype type);

/// Whether MPI_Type_create_f90_integer, _real or _complex makes datatypes of this combiner.
bool is_unnamed(int combiner);

/// The constructor's arguments, read one after the other in the order of the constructor's C binding. Types from
/// large-count constructors keep counts and displacements in one list, the others keep counts among the integers and
/// displacements in a list of their own; the readers hide that. One thread at a time. All throw std::invalid_argument
/// if the host returned fewer arguments than the constructor has.
class Contents {
  public:
    explicit Contents(MPI_Datatype type);
    Contents(const Contents&) = delete;
    Contents& operator=(const Contents&) = delete;
    ~Contents();

    /// A combiner of MPI 2 or newer: the readers also hide that Fortran 77's binding keeps displacements among the
    /// integers.
    [[nodiscard]] int combiner() const noexcept { return combiner_; }
    /// The constituent types; valid as long as this object.
    [[nodiscard]] const std::vector<MPI_Datatype>& types() const noexcept { return types_; }
    [[nodiscard]] MPI_Datatype type() const;

    /// An argument that is an int in every binding (ranks, orders, distributions).
    std::int64_t integer() { return integers_.next(); }
    std::vector<std::int64_t> integers(std::size_t n) { return integers_.next(n); }
    /// A count, block length or other argument that large-count bindings widen.
    std::int64_t count() { return counts_->next(); }
    std::vector<std::int64_t> counts(std::size_t n) { return counts_->next(n); }
    /// A displacement, stride or bound in bytes.
    std::int64_t address() { return addresses_->next(); }
    std::vector<std::int64_t> addresses(std::size_t n) { return addresses_->next(n); }

  private:
    class List {
      public:
        template <class T>
        void assign(const std::vector<T>& from, std::size_t n) {
            values_.assign(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(n));
        }
        [[nodiscard]] bool empty() const noexcept { return values_.empty(); }
        std::int64_t next();
        std::vector<std::int64_t> next(std::size_t n);

      private:
        std::vector<std::int64_t> values_;
        std::size_t position_ = 0;
    };

    int combiner_ = MPI_COMBINER_NAMED;
    std::vector<MPI_Datatype> types_;
    List integers_;
    List displacements_;
    List large_;
    List* counts_ = &integers_;
    List* addresses_ = &displacements_;
};

}  // namespace osc::host::detail
