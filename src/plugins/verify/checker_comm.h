// The communicators over which the usage checker of one process sends to that of another (race_exchange.h). Below
// MPI_THREAD_MULTIPLE all windows of one group share one: no two collectives on it are under way at once. Else each
// window has its own, because threads may enter the calls on two windows in different orders.
#pragma once

#include <mpi.h>

#include <memory>

#include "window/window.h"

namespace osc {

/// A communicator of the checker, freed with its last window.
class CheckerComm {
  public:
    /// Takes over `handle`.
    explicit CheckerComm(MPI_Comm handle);
    ~CheckerComm();
    CheckerComm(const CheckerComm&) = delete;
    CheckerComm& operator=(const CheckerComm&) = delete;
    MPI_Comm handle() const { return handle_; }

    /// The communicator for a window that has just been made of `comm`; collective over `comm`. Null on all processes
    /// if one has no communicator left, or has made as many as the checker may: one line says so.
    static std::shared_ptr<CheckerComm> of(Window& window, MPI_Comm comm);

  private:
    MPI_Comm handle_;
};

/// Drops what is left of communicators whose windows are freed; when MPI ends. One thread.
void release_checker_comms();

}  // namespace osc
