// The host MPI and libosc, as the health check uses them, without mpi.h. The implementation is a library of its own
// (libosc_check.so), so that osc_info runs where no MPI library is installed.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace osc::tools {

/// Not thread-safe. Functions that return bool return false with a line in `why`.
class HostMpi {
  public:
    virtual ~HostMpi() = default;
    /// The library's own version text, up to its first comma or line break.
    virtual std::string version() const = 0;
    /// The file that the MPI functions come from.
    virtual std::string path() const = 0;

    /// MPI_Init and MPI_Finalize. The rest is for the time in between.
    virtual bool start(std::string& why) = 0;
    virtual void finish() = 0;
    virtual int rank() const = 0;
    virtual int size() const = 0;
    virtual void barrier() = 0;
    /// Every process's text, by rank. Collective.
    virtual std::vector<std::string> exchange(const std::string& mine) = 0;

    /// MPI_Win_allocate over all processes and MPI_Win_lock_all; the window's memory is zero. Collective: false on all
    /// processes if it fails on one.
    virtual bool open_window(std::size_t bytes, std::string& why) = 0;
    virtual void close_window() = 0;
    /// Whether libosc serves the window, and not the host MPI.
    virtual bool is_served() const = 0;
    /// MPI_Win_shared_query: whether this process can load and store in `rank`'s part.
    virtual bool shares_memory_with(int rank) = 0;
    /// MPI_Put and MPI_Win_flush, MPI_Get and MPI_Win_flush.
    virtual bool put(int rank, std::size_t offset, const void* from, std::size_t bytes) = 0;
    virtual bool get(int rank, std::size_t offset, void* to, std::size_t bytes) = 0;
};

/// The function osc_check_open of libosc_check.so. The object lasts as long as the process.
using OpenHostMpi = HostMpi*();

}  // namespace osc::tools
