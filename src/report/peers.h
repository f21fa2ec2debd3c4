// What the processes of a window do, and which of them a wait is for; asked without their help.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "net/target/inspection.h"
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
    struct Inquiry {
        net::InspectQuestion question;
        std::uint32_t first;   // the process that is asked
        std::uint32_t second;  // the one that is asked too if the first does not answer soon; equal to `first`: none
    };
    /// Asks all at the same time, and polls the network until all are answered, or for 1.5 s. Network threads answer,
    /// so no peer's program needs to help. The answers in the same order; none from processes that did not answer.
    static std::vector<std::optional<net::Inspection>> ask(Window& window, std::span<const Inquiry> inquiries);
    Inquiry inquiry(Window& window, std::uint32_t rank, const sync::WaitQuestion& wait) const;
    void ask_all(Window& window, const std::vector<Inquiry>& inquiries, sync::Awaited& awaited);

    std::set<std::pair<const Window*, std::uint32_t>> silent_;  // they did not answer
};

}  // namespace osc::report
