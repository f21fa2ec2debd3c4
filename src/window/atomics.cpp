// Whether a window between nodes uses the network's atomics: for its locks, which are queues on the nodes or two-level
// locks, and for its accumulates, which are messages or the provider's atomics. The processes agree on both at
// creation, and all accumulates on a type that the provider has go by one mechanism, also those on the own process and
// on the node.
#include <cstdint>
#include <string>

#include "abi/abi.h"
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

std::string Window::atomics_refusal() const {
    if (atomics_refusal_ == kOneNode) return "the window is on one node";
    if (atomics_refusal_ == kDynamic) return "the window is dynamic";
    if (atomics_refusal_ == kMisaligned) return "the memory does not begin at a multiple of 8 bytes";
    if (atomics_refusal_ == kNone || atomics_refusal_ == kNotAsked)
        return "another process does not ask for them, or lacks them";
    const fabric::Endpoint& endpoint = net::NetworkStack::mine().endpoint();
    const std::string flaw = endpoint.atomics_flaw();
    return std::string(endpoint.provider()) + (atomics_refusal_ == kNoHardware   ? " has no atomics in hardware"
                                               : atomics_refusal_ == kNotExposed ? " registers no memory"
                                               : flaw.empty()                    ? " has no atomics on rows of elements"
                                                                                 : " " + flaw);
}

Window::AtomicsAgreement Window::state_atomics(AtomicsWish wish) {
    AtomicsAgreement mine;
    mine.any_op = promised_ops ? 0 : 1;
    const bool asks = wish == AtomicsWish::Provider || (wish == AtomicsWish::Auto && mine.any_op == 0);
    if (!asks || team.job() == nullptr || flavor == MPI_WIN_FLAVOR_DYNAMIC) {
        atomics_refusal_ = team.job() == nullptr ? kOneNode : flavor == MPI_WIN_FLAVOR_DYNAMIC ? kDynamic : kNotAsked;
        mine.refusal = atomics_refusal_;
        return mine;
    }
    const fabric::Endpoint& endpoint = net::NetworkStack::mine().endpoint();
    atomics_ = net::AtomicsTable(endpoint);
    mine.sum = atomics_.sum();
    mine.complement = 0x7fffffff - mine.sum;
    if (wish == AtomicsWish::Auto && !endpoint.has_hardware_atomics())
        atomics_refusal_ = kNoHardware;
    else if (atomics_.is_empty())
        atomics_refusal_ = kLacking;
    else if (bytes > 0 && exposed_.registration == nullptr)
        atomics_refusal_ = kNotExposed;
    else if (reinterpret_cast<std::uint64_t>(base) % kRowAlignment != 0 && bytes > 0)
        atomics_refusal_ = kMisaligned;
    mine.refusal = atomics_refusal_;
    return mine;
}

void Window::choose_atomics(AtomicsWish wish, const AtomicsAgreement& agreed) {
    const bool same = agreed.sum + agreed.complement == 0x7fffffff;
    if (agreed.refusal == kNone && same) {
        core.provider_atomics = !core.checks;  // the target must see each operation to check asserts
        if (core.provider_atomics) {
            accumulate_way_ = std::make_unique<reach::Net>(*net_, false, core.threaded, &atomics_, agreed.any_op != 0);
            core.accumulate_way = accumulate_way_.get();
        }
    }
    info.emplace_back("osc_atomics", core.provider_atomics ? "provider" : "messages");
    if (core.me != 0 || !base::verbose("strategy") || (!core.provider_atomics && wish != AtomicsWish::Provider)) return;
    const std::string why = core.provider_atomics     ? "the provider's atomics"
                            : agreed.refusal != kNone ? "messages, because " + atomics_refusal()
                            : same                    ? "messages, because OSC_CHECK is on"
                                   : "messages, because the processes' providers have different atomics";
    base::say("window %#llx of %u processes: accumulates by %s", abi::printable(handle), core.size, why.c_str());
}

// The reason why the window cannot have two-level locks, the same on all processes; null if it can.
const char* Window::unfit_for_two_level() const {
    if (team.job() == nullptr) return "the window is on one node";
    if (team.job()->leaders.size() < core.size) return "two processes of the window share a node";
    if (core.size > sync::kMostTallied) return "the window has more than 2047 processes";
    return nullptr;
}

bool Window::lacks_lock_words() const {
    return lock_words_ != nullptr && lock_words_->flaw()[0] != '\0';
}

void Window::choose_lock_scheme(bool wants_two_level, bool lacking) {
    const char* const unfit = unfit_for_two_level();
    if (wants_two_level && unfit == nullptr && !lacking) {
        locks_ = std::make_unique<sync::TwoLevel>(*lock_words_, core.me, core.size, *this);
        core.two_level = locks_.get();
        core.strategies.lock = strategy::make_two_level_lock(core.strategies.lock->allows_batches());
        // A lock word that is never free, so that the fast path of MPI_Win_lock fails, as on remote targets.
        core.mine().lock.word.store(sync::kBroken | sync::kExclusive, std::memory_order_relaxed);
    }
    info.emplace_back("osc_lock_scheme", core.two_level != nullptr ? "two_level" : "queued");
    if (!wants_two_level || core.me != 0 || !base::verbose("strategy")) return;
    const std::string why = core.two_level != nullptr ? "two-level, by the network's atomics"
                            : unfit != nullptr        ? std::string("queued, because ") + unfit
                            : lacks_lock_words()
                                ? std::string("queued, because ") + net::NetworkStack::mine().endpoint().provider() +
                                      " " + lock_words_->flaw()
                                : "queued, because the network of another process has no atomics";
    base::say("window %#llx of %u processes: locks %s", abi::printable(handle), core.size, why.c_str());
}

}  // namespace osc
