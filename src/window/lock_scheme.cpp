// The lock scheme of a window: queues on the nodes, or two-level locks with the network's atomics. The processes agree
// on it at creation.
#include <string>

#include "base/log.h"
#include "base/options.h"
#include "window/window.h"

namespace osc {

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
    base::say("window 0x%x of %u processes: locks %s", static_cast<unsigned>(handle), core.size, why.c_str());
}

}  // namespace osc
