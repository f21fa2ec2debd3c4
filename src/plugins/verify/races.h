// Conflict detection for one window: each origin records its accesses (access_log.h) and reports those of its own that
// conflict; at MPI_Win_fence and MPI_Win_free every process sends its accesses to their targets, which compare those
// of different origins (race_finder.h).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "plugins/verify/access_log.h"
#include "plugins/verify/events.h"
#include "plugins/verify/notification_log.h"
#include "plugins/verify/page_guard.h"
#include "plugins/verify/race_finder.h"
#include "plugins/verify/report.h"

namespace osc::check {

using Message = std::vector<std::byte>;

/// The accesses to one target as a message, and back. from_message() is false if the bytes are not a message.
/// `clock`: see RaceFinder::add().
Message to_message(std::uint64_t clock, const Entries& entries);
bool from_message(const Message& message, std::uint64_t& clock, Entries& entries);

/// What a report says about a conflict; two lines. `addresses`: bytes are addresses (dynamic windows).
std::vector<Line> lines_of(const Conflict& conflict, bool addresses);

class Ledger;

/// Part of a ledger, which calls it.
class Races {
  public:
    /// Sends out[r] to each process r of the window and receives in[r]; collective. False if that failed.
    using Exchange = std::function<bool(const std::vector<Message>& out, std::vector<Message>& in)>;
    struct Setting {
        std::uint32_t me = 0;
        std::uint32_t processes = 0;
        Promises promises;
        bool addresses = false;  // see lines_of()
        bool threads = false;    // several threads may call
        Exchange exchange;
    };
    Races(const Ledger& ledger, Setting setting);

    /// Gives the guard of this process's memory, whose loads and stores take part from now on. Before the first call.
    void watch_memory(std::unique_ptr<PageGuard> guard) { guard_ = std::move(guard); }

    /// A call returns `value` of a notification counter of this process, which it sets to 0 if `resets`. Thread-safe.
    void on_notification(std::uint32_t counter, std::uint64_t value, bool resets);
    /// This process has new counters.
    void on_new_counters();

    /// See AccessLog.
    Access epoch_at(std::uint32_t target) {
        const std::lock_guard lock(mutex_);
        return log_.epoch_at(target);
    }
    void on_operation(const Operation& operation);
    void before(const Synchronisation& call);
    void after(const Synchronisation& call);

    /// Compares the accesses since the last call; collective over the window's processes. Called after a fence that
    /// took effect, and before the window is freed, when no operation of this process is pending. False, at once, after
    /// a failed exchange.
    bool compare();

  private:
    void end_notified(std::uint64_t clock, Entries& entries) const;
    void expose(World world);
    void conceal();
    void tell(const std::vector<Conflict>& found);
    void tell_incomplete(std::uint64_t left_out, bool time);

    const Ledger& ledger_;
    const Setting setting_;
    std::mutex mutex_;
    AccessLog log_;
    RaceFinder finder_;
    NotificationLog notifications_;
    bool failed_ = false;
    bool told_incomplete_ = false;
    std::unique_ptr<PageGuard> guard_;                                // null: loads and stores are not seen
    World exposed_ = World::Fence;                                    // the exposure epoch that the guard watches
    std::set<std::pair<std::uint64_t, std::string>> reported_local_;  // the operation's site, and the other's text
    Entries local_;  // its loads and stores, and those of epochs before
};

}  // namespace osc::check
