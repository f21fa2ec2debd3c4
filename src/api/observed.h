// What statistics (OSC_STATS) and the timeline (OSC_TRACE) observe of a call: a stamp before it, the call, one event
// after it. Only the routes lead to the observed forms of the entry points (observed.cpp), and only if an option asks
// for them: a program without them runs the same instructions as before.
#pragma once

#include "host/datatype.h"
#include "stats/record.h"
#include "trace/recorder.h"
#include "window/window.h"

namespace osc {

/// Puts the observed forms in front in the tables of routes. Before the first call.
void observe_calls();

/// What an operation accesses at its target.
struct Elements {
    MPI_Count count;
    MPI_Datatype type;
};

/// One call, from before it until its event.
class Observed {
  public:
    /// `timed`: false for a call that is shorter than a second reading of the clock. Only if it waits its event has a
    /// length.
    explicit Observed(bool timed) : timed_(timed) {
        if (recorded_ || timed_) began_ = base::stamp();
    }
    /// The event of an operation; none for MPI_PROC_NULL. `window`: null if the host serves it. `more`: bits of the
    /// record's value beside the bytes.
    void operation(trace::Call call, stats::Kind kind, const Window* window, int rank, Elements target, int error,
                   std::uint64_t more = 0) const;
    /// That of a synchronisation call. `number`: its target or counter.
    void synchronisation(trace::Call call, stats::Sync sync, const Window* window, std::uint32_t number, int error,
                         bool detail = false) const;
    /// That of a call which only the timeline shows; `window`: its place there.
    void other(trace::Call call, std::uint16_t window, int error) const;

  private:
    std::uint64_t end() const;
    void count_time(stats::Counters& counters, std::size_t first, std::uint64_t end) const;
    void record(std::uint64_t end, trace::Call call, unsigned detail, int error, std::uint16_t window,
                std::uint32_t number, std::uint64_t value) const;

    const bool timed_;
    const bool recorded_ = trace::is_open() && trace::recording();
    std::uint64_t began_ = 0;
    const std::int64_t waited_ = base::waited_ns();
};

}  // namespace osc
