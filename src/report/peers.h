// What the processes of a window do, and which of them a wait is for; asked without their help.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "report/remote.h"
#include "sync/awaited.h"
#include "window/window.h"

namespace osc::report {

/// What a process does now.
enum class Doing {
    Waits,         // inside libosc, as its note says
    Finalizes,     // inside MPI_Finalize
    InHost,        // inside the host MPI
    Computes,      // outside MPI
    Runs,          // outside libosc; this host does not tell whether inside MPI
    Sleeps,        // in a system call
    SleepsOnDisk,  // in one that cannot be interrupted
    Stopped,       // by a signal
    Traced,        // by a debugger
    Ended,
    Silent,       // it does not answer, but its node does
    Unreachable,  // neither does its node
    Unknown,      // the system hides it
};

struct Findings {
    shm::ProcessView view;
    Doing doing = Doing::Unknown;
};

/// The peers of one report.
class Peers {
  public:
    /// Looks at a process until it is clear what it does: 20 ms as a rule, at most `limit_ns` on this node and 2 s on
    /// another one.
    Findings look_at(Window& window, std::uint32_t rank, std::int64_t limit_ns);
    /// The processes that the wait of a process of `window` is for.
    sync::Awaited find_awaited(Window& window, const shm::WaitNote& note);

  private:
    bool view(Window& window, std::uint32_t rank, shm::ProcessView& seen);
    Inquiry inquiry(Window& window, std::uint32_t rank, const sync::WaitQuestion& wait) const;
    void ask_all(Window& window, const std::vector<Inquiry>& inquiries, sync::Awaited& awaited);

    std::set<std::pair<const Window*, std::uint32_t>> silent_;  // they did not answer
};

}  // namespace osc::report
