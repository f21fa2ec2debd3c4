// What the usage checker knows of one window on this process: the epochs that are open and where the program opened
// them, and the parts that look for single kinds of mistakes. The checking entry points (entries.h) feed it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "plugins/verify/events.h"
#include "plugins/verify/local_buffers.h"
#include "plugins/verify/local_fibres.h"
#include "plugins/verify/races.h"
#include "plugins/verify/report.h"
#include "plugins/verify/target_fibres.h"

namespace osc::check {

/// A call that the program made earlier.
struct Earlier {
    const char* call = nullptr;  // null: none
    Site site;
};

class Ledger {
  public:
    /// `name`: the window's name now, as Finding::window has it. `created`: the call that made the window.
    Ledger(std::function<std::string()> name, Earlier created) : name_(std::move(name)), created_(created) {}

    // Operations and synchronisation calls, in order. Thread-safe. The caller has no lock of libosc.

    /// An operation is about to be performed.
    void before_operation(const Operation& operation);
    /// Numbers an operation whose call has succeeded. It need not be complete.
    void on_operation(Operation& operation);
    /// Before libosc's function runs: what the call releases must be published now.
    void before(const Synchronisation& call);
    /// The call has succeeded: what other processes released is visible.
    void after(const Synchronisation& call);

    std::string name() const { return name_(); }
    Earlier created() const { return created_; }
    /// check::report() of a finding in this window. Thread-safe.
    void report(Rule rule, std::vector<Line> lines) const { check::report({rule, name_(), std::move(lines)}); }
    /// The same with lines behind `line`: the epochs that are open now, and the calls that opened them; one line that
    /// says so if none is. Of the locks, at most three. Not from the parts, which run under the mutex.
    void report_with_epochs(Rule rule, Line line) const;
    /// Whether an epoch is open that MPI_Win_free or MPI_Finalize must not meet. A fence's is none. Thread-safe.
    bool has_open_epoch() const;

    /// Starts conflict detection. Before the first call.
    void watch_races(Races::Setting setting) { races_ = std::make_unique<Races>(*this, std::move(setting)); }
    /// Starts to watch loads and stores of this process to its window memory by the runtime. After watch_races(),
    /// before the first call.
    void watch_targets(JobFibres& job, TargetFibres::Setting setting) {
        target_fibres_ = std::make_unique<TargetFibres>(job, std::move(setting));
    }
    /// Compares what all processes have accessed, after a fence that took effect, or, if it is the `last` time, before
    /// the window is freed; collective.
    void compare(bool last);
    /// A call reads a notification counter: see Races.
    void on_notification(std::uint32_t counter, std::uint64_t value, bool resets);
    /// The window's processes compare no more; conflicts of this process's own operations are still found.
    void stop_comparing() { compares_ = false; }
    /// Null if not all processes of the window run the checker, and from stop_comparing() on.
    Races* races() const { return compares_ ? races_.get() : nullptr; }

    /// Gives the displacement units of all processes, by rank. Before the first call.
    void know_units(std::vector<std::uint64_t> units) { units_ = std::move(units); }
    std::uint64_t unit_of(std::uint32_t rank, std::uint64_t otherwise) const {
        return rank < units_.size() ? units_[rank] : otherwise;
    }

  private:
    std::vector<Line> open_epochs() const;

    const std::function<std::string()> name_;
    const Earlier created_;
    mutable std::mutex mutex_;
    std::uint64_t operations_ = 0;
    Earlier access_;                          // the last fence, or the open start or lock_all
    bool is_fence_ = false;                   // access_ is a fence
    Earlier exposure_;                        // the open post
    std::map<std::uint32_t, Earlier> locks_;  // of single targets
    LocalBuffers local_buffers_{*this};
    const std::unique_ptr<LocalFibres> local_fibres_ =
        thread_sanitizer() != nullptr ? std::make_unique<LocalFibres>() : nullptr;
    std::unique_ptr<Races> races_;  // null if not all processes of the window run the checker
    std::unique_ptr<TargetFibres> target_fibres_;
    bool compares_ = true;
    std::vector<std::uint64_t> units_;
};

}  // namespace osc::check
