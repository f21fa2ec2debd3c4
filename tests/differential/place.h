// A window of any flavour, with sizes and displacement units that differ per rank, seen as one array of bytes per rank.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

#include "random.h"

namespace diff {

enum class Flavor { CreateMalloc, CreateAllocMem, Allocate, Shared, Dynamic, Count };
const char* name_of(Flavor flavor);

class Place {
  public:
    /// Collective. With `host_safe`, only bases and sizes that every host addresses rightly.
    Place(Flavor flavor, bool host_safe, Random& random);
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    MPI_Win window() const { return window_; }
    Flavor flavor() const { return flavor_; }
    int ranks() const { return static_cast<int>(sizes_.size()); }
    std::size_t size(int rank) const { return sizes_[static_cast<std::size_t>(rank)]; }
    std::size_t unit(int rank) const { return units_[static_cast<std::size_t>(rank)]; }
    /// Whether one operation may touch [low, high).
    bool holds(int rank, std::ptrdiff_t low, std::ptrdiff_t high) const;
    /// The displacement of byte `start`; `low`: a byte that the operation touches, which selects the region.
    MPI_Aint displacement(int rank, std::ptrdiff_t start, std::ptrdiff_t low) const;

    /// This rank's memory. Accesses must be legal by the window's epochs.
    void load(std::vector<unsigned char>& out) const;
    void store(std::size_t offset, const unsigned char* from, std::size_t bytes);
    /// Whether the bytes around the memory are still as they were.
    bool guards_intact() const;

    /// Dynamic windows, collective: a region of `rank` is detached and other memory takes its place; its bytes become
    /// 0. Returns the bytes [first, second) that this replaced. A step, which may not run.
    std::pair<std::size_t, std::size_t> replace_region(int rank, Random& random);

  private:
    struct Region {
        std::size_t offset;
        std::size_t bytes;
        MPI_Aint address;
        unsigned char* memory;  // of this rank's regions
        unsigned char* block;   // its allocation, with guards
        bool from_mpi;
    };
    unsigned char* take(std::size_t bytes, std::size_t skew, bool from_mpi, unsigned char*& block) const;
    void give(Region& region) const;
    const Region* region_of(int rank, std::ptrdiff_t byte) const;
    void share_addresses();
    void make_dynamic(bool host_safe, Random& random);

    Flavor flavor_;
    int me_ = 0;
    MPI_Win window_ = MPI_WIN_NULL;
    std::vector<std::size_t> sizes_;
    std::vector<std::size_t> units_;
    std::vector<std::vector<Region>> regions_;  // per rank; the other flavours have one
};

}  // namespace diff
