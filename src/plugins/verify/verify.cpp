// The usage checker as a plugin: the function that libosc.so calls when it loads the plugin, and the Checker.
#include "plugins/verify/checker_comm.h"
#include "plugins/verify/entries.h"
#include "plugins/verify/races.h"
#include "window/checker.h"

namespace osc {
namespace {

class Verifier final : public Checker {
  public:
    void fault(Window& window, const char* function, Fault fault) override {
        report_mistake(window, function, fault, base::fault_text());
    }
    int notified(const char* call, op::OpKind kind, const Buffers& buffers, MPI_Op op, MPI_Win win, int counter,
                 MPI_Request* request, base::FunctionRef<int(const Buffers&)> below) override {
        return verify_notified(call, kind, buffers, op, win, counter, request, below);
    }
    void counter_read(Window& window, std::uint32_t counter, std::uint64_t value, bool resets) override {
        if (check::Races* const races = window.ledger->races(); races != nullptr)
            races->on_notification(counter, value, resets);
    }
    void counters_made(Window& window) override {
        if (window.ledger->races() != nullptr) window.ledger->races()->on_new_counters();
    }
    void deadlock(Window& window, const char* call, const std::string& text) override {
        window.ledger->report_with_epochs(check::Rule::Unmatched,
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
