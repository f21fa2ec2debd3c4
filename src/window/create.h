// Creation and free of windows: the collective protocols.
#pragma once

#include <mpi.h>

#include <atomic>

#include "window/window.h"

namespace osc {

/// The arguments of a window-creation call.
struct Request {
    int flavor = 0;
    void* base = nullptr;  // create only
    MPI_Aint size = 0;
    MPI_Aint unit = 1;
    MPI_Info info = MPI_INFO_NULL;
    MPI_Comm comm = MPI_COMM_NULL;
    Fault fault = Fault::None;  // of a wrong argument of this process: creation then fails on all processes
};

/// The alignment that info asks for, at least 64 bytes (MPI 4.1 section 12.2.2).
std::size_t wanted_alignment(MPI_Info info);

/// Collective over the request's communicator. On success `window` is live and has a handle; if libosc cannot serve the
/// communicator or the memory, `window` is null and `reason` says why (the host serves it then). Otherwise an MPI error
/// class, the same on all processes, with base::fault_text() on those where it arose.
int create_window(Request request, Window*& window, const char*& reason);

/// Collective: waits for all processes, frees the host's window (attribute callbacks run) and then the memory.
Fault free_window(Window* window, int& host_error);

/// The host's error class of a fault.
int error_class(Fault fault);

/// The info in use at creation and after MPI_Win_set_info.
InfoInUse read_info(MPI_Info info, int flavor, const InfoInUse& before);

/// The number of the strategy that this process asks for, by info key or environment.
int wanted_strategy(strategy::SyncKind kind, MPI_Info info);
/// Whether this process asks for two-level locks.
bool wants_two_level(MPI_Info info);
AtomicsWish wanted_atomics(MPI_Info info);
/// Whether the window has the info key accumulate_ops: operations of different kinds do not meet at one element.
bool promises_ops(MPI_Info info);
/// The value of osc_adopt in `info`, or of OSC_ADOPT: auto, always or off.
std::string wanted_adoption(MPI_Info info);
/// Makes memory given to MPI_Win_create shared, as far as osc_adopt and the system allow, and says so in `block`.
void adopt_memory(Window& window, const Request& request, shm::ControlBlock& block);
/// MPI_Win_attach: adds a region to a dynamic window, and makes it shared in the same way. `shared` is the part that
/// is, `kept_private` why the rest is not, if adoption was asked for.
Fault attach_memory(Window& window, const void* base, std::size_t bytes, shm::SharedPart& shared,
                    std::string& kept_private);

/// Whether `address` lies in device memory, which the processor cannot load and store (the host serves windows over
/// it): by the device libraries (of CUDA, HIP and Level Zero) that the process has loaded; libosc loads none. Managed
/// and pinned memory does not count, because the processor can access it. Takes a fraction of a microsecond if no such
/// library is loaded. Thread-safe.
bool in_device_memory(const void* address);

/// Whether a device library was loaded when a window was created last. Then operations ask where their buffers lie.
inline constinit std::atomic<bool> g_has_devices{false};
/// Looks, and returns g_has_devices. Thread-safe.
bool look_for_devices();

}  // namespace osc
