// Sets of windows for the measures: owns the windows and the memory beneath them, one set per measure, every window of
// the same flavour and size with displacement unit 1.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <string>
#include <vector>

namespace bench {

enum class Flavour { allocate, alloc_mem, malloc, dynamic };

inline constexpr Flavour kFlavours[] = {Flavour::allocate, Flavour::alloc_mem, Flavour::malloc, Flavour::dynamic};

const char* name_of(Flavour flavour);

class WindowSet {
  public:
    // Collective over `comm`; windows are freed, collectively too, by the destructor.
    WindowSet(Flavour flavour, int count, std::size_t bytes, MPI_Comm comm);
    ~WindowSet();
    WindowSet(const WindowSet&) = delete;
    WindowSet& operator=(const WindowSet&) = delete;

    int count() const { return static_cast<int>(windows_.size()); }
    MPI_Win window(int i) const { return windows_[static_cast<std::size_t>(i)]; }
    std::byte* memory(int i) const { return memory_[static_cast<std::size_t>(i)]; }

    // The displacement that byte 0 of window i has at `rank`: an address for dynamic windows, else 0.
    MPI_Aint origin_of(int i, int rank) const {
        return bases_.empty() ? 0 : bases_[static_cast<std::size_t>(i * ranks_ + rank)];
    }

    void lock_all();
    void unlock_all();

    // Stores by the owner are bracketed by these, as the standard wants it.
    void own_begin();
    void own_end();

  private:
    void make_one(MPI_Comm comm);

    Flavour flavour_;
    std::size_t bytes_;
    int rank_ = 0;
    int ranks_ = 0;
    std::vector<MPI_Win> windows_;
    std::vector<std::byte*> memory_;
    std::vector<MPI_Aint> bases_;
};

}  // namespace bench
