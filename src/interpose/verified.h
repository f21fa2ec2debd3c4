// Entry points of the usage checker (OSC_CHECK), in front of all others. They tell the window's check::Ledger what the
// program does, look for mistakes before a call, and call the function that the route had before. Only the routes lead
// to them, and only if OSC_CHECK is on.
#pragma once

#include <functional>

#include "check/ledger.h"
#include "interpose/data.h"
#include "interpose/routes.h"
#include "interpose/serve.h"

namespace osc {

/// The functions that the verified ones call: libosc's own, or those of another layer (counted.h). Null if off.
extern Routes g_verified;

/// Replaces libosc's functions in the tables of routes by the verified ones. After all other layers, before the first
/// call.
void verify_calls();

/// Reports a fault of `function` that is a mistake of the program, with base::fault_text(), the call site and the open
/// epochs. Other faults (a process died, no memory) are not reported. Called before the error handler runs.
void report_fault(Window& window, const char* function, Fault fault);
inline void report_unless_none(Window& window, const char* function, Fault fault) {
    if (fault != Fault::None) report_fault(window, function, fault);
}

/// The call that this thread is in; for reports that are made below the entry points.
struct CurrentCall {
    check::Site site;
    std::string operation;    // the operation's target and bytes, for a data call; else ""
    bool mismatched = false;  // a mismatch of its datatypes has been reported
};
extern thread_local CurrentCall* t_current_call;

/// Marks a call for report_fault() while it runs.
class CallScope {
  public:
    explicit CallScope(check::Site site) : before_(t_current_call) {
        current_.site = site;
        t_current_call = &current_;
        check::t_call_site = site;
    }
    ~CallScope() {
        t_current_call = before_;
        check::t_call_site = before_ != nullptr ? before_->site : check::Site{};
    }
    CallScope(const CallScope&) = delete;
    CallScope& operator=(const CallScope&) = delete;
    CurrentCall* operator->() { return &current_; }

  private:
    CurrentCall current_;
    CurrentCall* const before_;
};

/// A notified operation (osc/notify.h) on a window with a ledger, which below() performs with the given buffers.
int verify_notified(const char* call, op::OpKind kind, Buffers buffers, MPI_Op op, MPI_Win win, int counter,
                    MPI_Request* request, const std::function<int(const Buffers&)>& below);

/// A call returns `value` of a notification counter of this process, on a window with a ledger; it sets it to 0 if
/// `resets`.
void note_notification(Window& window, std::uint32_t counter, std::uint64_t value, bool resets = false);

/// Follows a request of an operation to the call that completes it. Replaces the host's constant request, which many
/// operations share, by one of its own.
void follow_request(Window& window, check::Line issued, std::uint64_t operation, MPI_Request& request);
/// Before the window's ledger is deleted: its requests have nothing to report to.
void forget_ledger(const check::Ledger& ledger);
/// Reports the requests that no call has completed; part of report_at_end().
void report_open_requests();
/// Reports the windows and requests that the program leaves, and how many reports there were; at MPI_Finalize, before
/// libosc ends the windows. One thread.
void report_at_end();

/// The window's name for a report: window 0xa0000000 "halo".
std::string name_for_report(MPI_Win handle);

/// The window and its ledger; null for windows that the checker does not watch (the host serves them).
inline Window* watched(MPI_Win win) {
    Window* const window = find_window(win);
    return window != nullptr && window->ledger != nullptr ? window : nullptr;
}

namespace verified {
// Not all of the queries are defined.
#define OSC_ENTRY(kind, name, parameters, arguments) OSC_VERIFIED_##kind(name, parameters)
#define OSC_VERIFIED_Data(name, parameters) int name parameters;
#define OSC_VERIFIED_Sync(name, parameters) int name parameters;
#define OSC_VERIFIED_Window(name, parameters) int name parameters;
#define OSC_VERIFIED_Query(name, parameters) int name parameters;
#define OSC_VERIFIED_Comm(name, parameters)
#include "interpose/entries.def"
#undef OSC_VERIFIED_Data
#undef OSC_VERIFIED_Sync
#undef OSC_VERIFIED_Window
#undef OSC_VERIFIED_Query
#undef OSC_VERIFIED_Comm
#undef OSC_ENTRY
}  // namespace verified

}  // namespace osc
