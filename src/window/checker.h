// The usage checker (OSC_CHECK) as the rest of libosc sees it. It is a plugin, libosc_verify.so (src/plugins/verify),
// which is in memory only if the option asks for it. Its entry points stand in the routes in front of all others, so it
// sees the program's calls by itself; libosc calls this interface for all else.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>

#include "base/fault.h"
#include "base/function_ref.h"
#include "op/call.h"

namespace osc {

struct Buffers;
class Window;

class Checker {
  public:
    /// Reports a fault of `function` that is a mistake of the program, with base::fault_text(), the call site and the
    /// open epochs. Other faults (a process died, no memory) are not reported. Before the error handler runs.
    virtual void fault(Window& window, const char* function, Fault fault) = 0;
    /// A notified operation (osc/notify.h), which below() performs with the given buffers.
    virtual int notified(const char* call, op::OpKind kind, const Buffers& buffers, MPI_Op op, MPI_Win win, int counter,
                         MPI_Request* request, base::FunctionRef<int(const Buffers&)> below) = 0;
    /// A call returns `value` of a notification counter of this process; it sets the counter to 0 if `resets`.
    virtual void counter_read(Window& window, std::uint32_t counter, std::uint64_t value, bool resets) = 0;
    /// The window's processes have set the number of their counters.
    virtual void counters_made(Window& window) = 0;
    /// The hang reporter has found a deadlock of posts and starts while the program is in `call`.
    virtual void deadlock(Window& window, const char* call, const std::string& text) = 0;
    /// At MPI_Finalize, before libosc ends the windows: reports windows and requests that the program leaves, and how
    /// many reports there were. One thread.
    virtual void report_at_end() = 0;
    /// MPI ends, and the windows have ended. One thread.
    virtual void end() = 0;

  protected:
    ~Checker() = default;
};

/// Null: the checker is off. Constant once the routes are set. It watches the windows with a Core::ledger.
inline constinit Checker* g_checker = nullptr;

}  // namespace osc
