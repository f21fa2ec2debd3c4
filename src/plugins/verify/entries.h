// Entry points of the usage checker (OSC_CHECK), in front of all others. They tell the window's check::Ledger what the
// program does, look for mistakes before a call, and call the function that the route had before. Only the routes lead
// to them, and only if OSC_CHECK is on.
#pragma once

#include <utility>

#include "api/data.h"
#include "api/routes.h"
#include "api/serve.h"
#include "base/function_ref.h"
#include "plugins/libosc.h"
#include "plugins/verify/ledger.h"
#include "plugins/verify/thread_sanitizer.h"

namespace osc {

/// Replaces libosc's functions in the tables of routes by the verified ones.
void verify_calls();

/// Checker::fault(), with a text.
void report_mistake(Window& window, const char* function, Fault fault, const std::string& text);
inline void report_unless_none(Window& window, const char* function, Fault fault) {
    if (fault != Fault::None) report_mistake(window, function, fault, plugin::g_libosc.fault_text());
}

/// The call that this thread is in, beside check::t_call_site; for reports that are made below the entry points.
struct CurrentCall {
    std::string operation;    // the operation's target and bytes, for a data call; else ""
    bool mismatched = false;  // a mismatch of its datatypes has been reported
};
[[gnu::tls_model("initial-exec")]] extern constinit thread_local CurrentCall* t_current_call;

/// Marks a call, for reports, while it runs.
class CallScope {
  public:
    explicit CallScope(check::Site site)
        : call_before_(std::exchange(t_current_call, &current_)),
          site_before_(std::exchange(check::t_call_site, site)) {}
    ~CallScope() {
        t_current_call = call_before_;
        check::t_call_site = site_before_;
    }
    CallScope(const CallScope&) = delete;
    CallScope& operator=(const CallScope&) = delete;
    CurrentCall* operator->() { return &current_; }

  private:
    const check::IgnoredScope ignored_;
    CurrentCall current_;
    CurrentCall* const call_before_;
    const check::Site site_before_;
};

/// Checker::notified().
int verify_notified(const char* call, op::OpKind kind, Buffers buffers, MPI_Op op, MPI_Win win, int counter,
                    MPI_Request* request, base::FunctionRef<int(const Buffers&)> below);

/// Whether the host has room for one more request of the checker's: it ends a process that has too many.
bool may_follow_request();
/// Follows the request of an operation to the call that completes it. Replaces the host's constant request, which many
/// operations share, by one of its own.
void follow_request(Window& window, check::Line issued, const check::Operation& operation, MPI_Request& request);
/// Before the window's ledger is deleted: its requests have nothing to report to.
void forget_ledger(const check::Ledger& ledger);
/// Reports the requests that no call has completed; part of report_at_end().
void report_open_requests();
/// Checker::report_at_end().
void report_at_end();

/// The window and its ledger; null for windows that the checker does not watch (the host serves them).
inline Window* watched(MPI_Win win) {
    Window* const window = plugin::g_libosc.find_window(win);
    return window != nullptr && window->core.ledger != nullptr ? window : nullptr;
}

namespace verified {
// Functions of the kind Comm, and most of the kind Query, are not defined.
#define OSC_ENTRY(kind, name, parameters, arguments) int name parameters;
#include "api/entries.def"
}  // namespace verified

}  // namespace osc
