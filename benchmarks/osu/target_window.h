// A window of the kind that -w asks for, with as many bytes on every rank.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

#include "memory.h"
#include "options.h"

namespace osu {

// The bare calls, collective: over `memory`, or with Creation::allocate over what the library allocates, which `memory`
// then points to. Dynamic windows have it attached.
MPI_Win make_window(Creation creation, std::byte*& memory, std::size_t bytes, MPI_Comm comm);
void free_window(Creation creation, const std::byte* memory, MPI_Win& win);

class Window {
  public:
    // Collective over `comm`, as is the end. The memory is zeroed.
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
    std::byte* mine_;
    MPI_Win win_;
    std::vector<MPI_Aint> addresses_;
};

// The addresses that all ranks' memory has in a dynamic window; nothing for other windows. Collective.
std::vector<MPI_Aint> exchanged_addresses(Creation creation, const std::byte* memory, MPI_Comm comm);

}  // namespace osu
