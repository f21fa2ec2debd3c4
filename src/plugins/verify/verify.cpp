// The usage checker as a plugin: the function that libosc.so calls when it loads the plugin, and the Checker. Reports
// of faults that libosc's own checks find have a call site with it.
#include "host/host.h"
#include "plugins/verify/entries.h"
#include "plugins/verify/race_exchange.h"
#include "window/checker.h"

namespace osc {

[[gnu::tls_model("initial-exec")]] constinit thread_local CurrentCall* t_current_call = nullptr;

namespace {

// Rule::Count: not a mistake of the program.
check::Rule rule_of(Fault fault) {
    using enum Fault;
    const auto is_one_of = [fault](auto... faults) { return ((fault == faults) || ...); };
    if (is_one_of(None, AttachRefused, Dead, NoMem, Other)) return check::Rule::Count;
    if (is_one_of(Disp, Range)) return check::Rule::Range;
    return fault == Sync       ? check::Rule::Epoch
           : fault == Assert   ? check::Rule::Assert
           : fault == Truncate ? check::Rule::Signature
                               : check::Rule::Argument;
}

}  // namespace

void report_mistake(Window& window, const char* function, Fault fault, const std::string& text) {
    const check::Rule rule = rule_of(fault);
    if (rule == check::Rule::Count) return;
    const CurrentCall* const current = t_current_call;
    // The mistake has been reported by its place in the data.
    if (current != nullptr && current->mismatched && (fault == Fault::Type || fault == Fault::Truncate)) return;
    check::Line line{std::string(function) + (current != nullptr ? current->operation : "") + ": " + text,
                     check::t_call_site};
    if (rule == check::Rule::Epoch)
        window.core.ledger->report_with_epochs(rule, std::move(line));
    else
        window.core.ledger->report(rule, {std::move(line)});
}

namespace {

class Verifier final : public Checker {
  public:
    void fault(Window& window, const char* function, Fault fault) override {
        report_mistake(window, function, fault, plugin::g_libosc.fault_text());
    }
    int notified(const char* call, op::OpKind kind, const Buffers& buffers, MPI_Op op, MPI_Win win, int counter,
                 MPI_Request* request, base::FunctionRef<int(const Buffers&)> below) override {
        return verify_notified(call, kind, buffers, op, win, counter, request, below);
    }
    void counter_read(Window& window, std::uint32_t counter, std::uint64_t value, bool resets) override {
        const check::IgnoredScope ignored;
        window.core.ledger->on_notification(counter, value, resets);
    }
    void counters_made(Window& window) override {
        if (window.core.ledger->races() != nullptr) window.core.ledger->races()->on_new_counters();
    }
    void deadlock(Window& window, const char* call, const std::string& text) override {
        window.core.ledger->report_with_epochs(check::Rule::Unmatched,
                                               {std::string(call) + ": " + text, check::t_call_site});
    }
    void report_at_end() override { osc::report_at_end(); }
    void end() override { release_checker_comms(); }
};

Verifier g_verifier;

}  // namespace

// One thread, before the first call of the program.
extern "C" __attribute__((visibility("default"))) Checker* osc_verify_open(const plugin::Table* libosc) {
    if (!plugin::take(libosc)) return nullptr;
    verify_calls();
    return &g_verifier;
}

}  // namespace osc
