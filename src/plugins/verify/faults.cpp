// Reports of faults that libosc's own checks find, whether the checker is on or not: with it they have a call site.
#include "host/host.h"
#include "plugins/verify/entries.h"

namespace osc {

[[gnu::tls_model("initial-exec")]] constinit thread_local CurrentCall* t_current_call = nullptr;

std::string name_for_report(MPI_Win handle) {
    char name[MPI_MAX_OBJECT_NAME] = "";
    int length = 0;
    host::real().Win_get_name(handle, name, &length);
    char number[32];
    std::snprintf(number, sizeof number, "window 0x%x", static_cast<unsigned>(handle));
    return length > 0 ? std::string(number) + " \"" + name + "\"" : number;
}

namespace {

// Rule::Count: not a mistake of the program.
check::Rule rule_of(Fault fault) {
    switch (fault) {
        case Fault::Sync:
            return check::Rule::Epoch;
        case Fault::Assert:
            return check::Rule::Assert;
        case Fault::Disp:
        case Fault::Range:
            return check::Rule::Range;
        case Fault::Truncate:
            return check::Rule::Signature;
        case Fault::Arg:
        case Fault::Attach:
        case Fault::Base:
        case Fault::Buffer:
        case Fault::Count:
        case Fault::Flavor:
        case Fault::Group:
        case Fault::Info:
        case Fault::LockType:
        case Fault::Op:
        case Fault::Rank:
        case Fault::Shared:
        case Fault::Size:
        case Fault::Type:
        case Fault::Win:
            return check::Rule::Argument;
        case Fault::None:
        case Fault::AttachRefused:
        case Fault::Dead:
        case Fault::NoMem:
        case Fault::Other:
            break;
    }
    return check::Rule::Count;
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
        window.ledger->report_with_epochs(rule, std::move(line));
    else
        window.ledger->report(rule, {std::move(line)});
}

}  // namespace osc
