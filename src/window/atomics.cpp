// The mechanism of a window's accumulates between nodes: messages, or the provider's atomics. The processes agree on it
// at creation, and all accumulates on a type that the provider has go by it, also those on the own process and on the
// node.
#include <cstdint>
#include <string>

#include "base/log.h"
#include "base/options.h"
#include "reach/net.h"
#include "window/create.h"
#include "window/window.h"

namespace osc {
namespace {

/// Why a process does not use the provider's atomics. The first two hold for all processes or for none.
enum AtomicsRefusal : int {
    kNone,
    kOneNode,
    kDynamic,
    kNotAsked,
    kNoHardware,
    kLacking,
    kNotExposed,
    kMisaligned,
};

constexpr std::uint64_t kRowAlignment = 8;  // of the longest type that providers have

}  // namespace

std::string Window::refusal_text(int refusal) const {
    const auto provider = [] { return std::string(net::NetworkStack::mine().endpoint().provider()); };
    switch (refusal) {
        case kOneNode:
            return "the window is on one node";
        case kDynamic:
            return "the window is dynamic";
        case kNoHardware:
            return provider() + " has no atomics in hardware";
        case kLacking: {
            const char* flaw = net::NetworkStack::mine().endpoint().atomics_flaw();
            return provider() + " " + (flaw[0] != '\0' ? flaw : "has no atomics on rows of elements");
        }
        case kNotExposed:
            return provider() + " registers no memory";
        case kMisaligned:
            return "the memory does not begin at a multiple of 8 bytes";
        default:
            return "another process does not ask for them, or lacks them";
    }
}

Window::AtomicsAgreement Window::state_atomics(MPI_Info hints) {
    AtomicsAgreement mine;
    mine.any_op = promises_ops(hints) ? 0 : 1;
    const AtomicsWish wish = wanted_atomics(hints);
    const bool asks = wish == AtomicsWish::Provider || (wish == AtomicsWish::Auto && mine.any_op == 0);
    if (!asks || team.job() == nullptr || flavor == MPI_WIN_FLAVOR_DYNAMIC) {
        mine.refusal = team.job() == nullptr ? kOneNode : flavor == MPI_WIN_FLAVOR_DYNAMIC ? kDynamic : kNotAsked;
        return mine;
    }
    const fabric::Endpoint& endpoint = net::NetworkStack::mine().endpoint();
    atomics_ = net::AtomicsTable(endpoint);
    mine.sum = atomics_.sum();
    mine.complement = 0x7fffffff - mine.sum;
    if (wish == AtomicsWish::Auto && !endpoint.has_hardware_atomics())
        mine.refusal = kNoHardware;
    else if (atomics_.is_empty())
        mine.refusal = kLacking;
    else if (bytes > 0 && exposed_.registration == nullptr)
        mine.refusal = kNotExposed;
    else if (reinterpret_cast<std::uint64_t>(base) % kRowAlignment != 0 && bytes > 0)
        mine.refusal = kMisaligned;
    return mine;
}

void Window::choose_atomics(MPI_Info hints, const AtomicsAgreement& agreed) {
    const bool tells = core.me == 0 && base::verbose("strategy");
    std::string why;
    if (agreed.refusal != kNone) {
        const int mine = tells ? state_atomics(hints).refusal : kNone;
        if (tells) why = refusal_text(mine != kNone ? mine : kNotAsked);
    } else if (agreed.sum + agreed.complement != 0x7fffffff) {
        why = "the processes' providers have different atomics";
    } else {
        core.provider_atomics = !core.checks;  // the target must see each operation to check asserts
        if (core.checks) why = "OSC_CHECK is on";
        if (core.provider_atomics) {
            accumulate_way_ = std::make_unique<reach::Net>(*net_, false, &atomics_, agreed.any_op != 0);
            core.accumulate_way = accumulate_way_.get();
        }
    }
    info.emplace_back("osc_atomics", core.provider_atomics ? "provider" : "messages");
    if (!tells || (!core.provider_atomics && wanted_atomics(hints) != AtomicsWish::Provider)) return;
    base::say("window 0x%x of %u processes: accumulates by %s", static_cast<unsigned>(handle), core.size,
              why.empty() ? "the provider's atomics" : ("messages, because " + why).c_str());
}

}  // namespace osc
