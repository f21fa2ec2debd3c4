// Conflict detection for one window: each origin records its accesses (access_log.h) and reports those of its own that
// conflict; at MPI_Win_fence and MPI_Win_free every process sends its accesses to their targets, which compare those
// of different origins (race_finder.h).
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "check/access_log.h"
#include "check/events.h"
#include "check/race_finder.h"
#include "check/report.h"

namespace osc::check {

using Message = std::vector<std::byte>;

/// The accesses to one target as a message, and back. from_message() is false if the bytes are not a message.
/// `clock`: see RaceFinder::add().
Message to_message(std::uint64_t clock, const std::vector<Entry>& entries);
bool from_message(const Message& message, std::uint64_t& clock, std::vector<Entry>& entries);

/// What a report says about a conflict; two lines. `addresses`: bytes are addresses (dynamic windows).
std::vector<Line> lines_of(const Conflict& conflict, bool addresses);

class Races final : public Watcher {
  public:
    /// Sends out[r] to each process r of the window and receives in[r]; collective. False if that failed.
    using Exchange = std::function<bool(const std::vector<Message>& out, std::vector<Message>& in)>;
    struct Setting {
        std::uint32_t me = 0;
        std::uint32_t processes = 0;
        Promises promises;
        bool addresses = false;             // see lines_of()
        std::function<std::string()> name;  // as Finding::window has it
        Exchange exchange;
    };
    explicit Races(Setting setting);

    void on_operation(const Operation& operation) override;
    void before(const Synchronisation& call) override;
    void after(const Synchronisation& call) override;

    /// Compares the accesses since the last call; collective over the window's processes. Called after a fence that
    /// took effect, and before the window is freed, when no operation of this process is pending. After a failed
    /// exchange it does nothing.
    void compare();

  private:
    void tell(const std::vector<Conflict>& found) const;
    void tell_incomplete(std::uint64_t left_out, bool time);

    const Setting setting_;
    std::mutex mutex_;
    AccessLog log_;
    RaceFinder finder_;
    bool failed_ = false;
    bool told_incomplete_ = false;
};

}  // namespace osc::check
