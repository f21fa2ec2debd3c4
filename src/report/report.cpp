// When reports are made: the time limit, and SIGUSR1.
#include "report/report.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>

#include "abi/abi.h"
#include "base/launcher.h"
#include "base/options.h"
#include "host/host.h"
#include "shm/arena.h"

namespace osc::report {
namespace {

struct sigaction g_before;  // the host's handler, or none
bool g_by_hydra = false;

// Hydra reports a failed process by SIGUSR1 to its children, which is for the host alone. Other launchers pass on the
// user's signal (scancel -s USR1).
void demanded(int number, siginfo_t* info, void* context) {
    const int error = errno;
    if ((g_before.sa_flags & SA_SIGINFO) != 0)
        g_before.sa_sigaction(number, info, context);
    else if (g_before.sa_handler != SIG_DFL)
        g_before.sa_handler(number);
    const bool for_host = g_by_hydra && info->si_pid == ::getppid();
    if (!for_host && !shm::demand_reports()) {
        static const char kLine[] = "libosc: SIGUSR1: no thread of this process waits inside libosc\n";
        if (::write(STDERR_FILENO, kLine, sizeof kLine - 1) < 0) errno = error;
    }
    errno = error;
}

bool is_of_host(const struct sigaction& action) {
    Dl_info handler{};
    Dl_info host{};
    auto* const address = (action.sa_flags & SA_SIGINFO) != 0 ? reinterpret_cast<void*>(action.sa_sigaction)
                                                              : reinterpret_cast<void*>(action.sa_handler);
    return ::dladdr(address, &handler) != 0 && ::dladdr(reinterpret_cast<void*>(host::real().Win_free), &host) != 0 &&
           handler.dli_fbase == host.dli_fbase;
}

// A handler of the program stays. The host's is called first.
void take_signal() {
    if (::sigaction(SIGUSR1, nullptr, &g_before) != 0) return;
    const bool is_default = (g_before.sa_flags & SA_SIGINFO) == 0 && g_before.sa_handler == SIG_DFL;
    const bool is_ignored = (g_before.sa_flags & SA_SIGINFO) == 0 && g_before.sa_handler == SIG_IGN;
    if (!is_default && (is_ignored || !is_of_host(g_before))) return;
    g_by_hydra = base::launcher::is_hydra();
    struct sigaction ours {};
    ours.sa_sigaction = &demanded;
    ours.sa_flags = SA_SIGINFO | SA_RESTART;
    ::sigemptyset(&ours.sa_mask);
    ::sigaction(SIGUSR1, &ours, nullptr);
}

}  // namespace

void start() {
    static std::once_flag once;
    std::call_once(once, [] {
        const std::int64_t after = base::hang_limit();
        if (after == 0) return;
        shm::Activity& activity = shm::Arena::mine().activity();
        shm::use_activity(activity);
        // Also without a network: the polls show peers that this process is inside the host.
        if (base::values().host_progress_hook && abi::progress().hook(nullptr))
            activity.counts_polls.store(1, std::memory_order_relaxed);
        shm::set_threaded(host::threads());
        take_signal();
        shm::watch_waits(&explain, after);
    });
}

}  // namespace osc::report
