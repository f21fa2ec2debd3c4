// A window of the kind that -w asks for, with as many bytes on every rank.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

#include "memory.h"
#include "options.h"

namespace osu {

class Window {
  public:
    // Collective over `comm`, as is the end.
    Window(Creation creation, std::size_t bytes, MPI_Comm comm);
    ~Window();
    Window(const Window&) = delete;
    Window& operator=(const Window&) = delete;

    MPI_Win handle() const { return win_; }
    std::byte* mine() const { return mine_; }
    // The displacement of byte 0 at `rank`: an address in a dynamic window, else 0.
    MPI_Aint start_of(int rank) const { return addresses_.empty() ? 0 : addresses_[static_cast<std::size_t>(rank)]; }

  private:
    Creation creation_;
    Memory plain_;
    MPI_Win win_ = MPI_WIN_NULL;
    std::byte* mine_ = nullptr;
    std::vector<MPI_Aint> addresses_;
};

}  // namespace osu
