// The verified synchronisation calls.
#include <vector>

#include "host/host.h"
#include "plugins/verify/entries.h"

namespace osc {
namespace {

using check::Act;
using check::Synchronisation;

using Ranks = std::vector<std::uint32_t>;

// The members of a group as ranks in the window; empty if the group is not valid, which libosc's function reports.
Ranks ranks_of(Window& window, MPI_Group group) {
    const host::Real& mpi = host::real();
    int count = 0;
    if (group == MPI_GROUP_NULL || mpi.Group_size(group, &count) != MPI_SUCCESS || count <= 0) return {};
    const auto members = static_cast<std::size_t>(count);
    std::vector<int> from(members);
    std::vector<int> to(members);
    for (std::size_t i = 0; i < members; ++i)
        from[i] = static_cast<int>(i);
    if (mpi.Group_translate_ranks(group, count, from.data(), window.team.group(), to.data()) != MPI_SUCCESS) return {};
    Ranks ranks;
    for (const int rank : to)
        if (rank >= 0) ranks.push_back(static_cast<std::uint32_t>(rank));
    return ranks;
}

// Runs `below` between the two events of a call.
template <class Below>
int synchronise(Window& window, Synchronisation call, Below&& below) {
    const CallScope scope(call.site);
    check::Ledger& ledger = *window.core.ledger;
    ledger.before(call);
    const int error = below();
    if (error == MPI_SUCCESS) ledger.after(call);
    return error;
}

Fault no_rule(Core&, std::uint32_t) {
    return Fault::None;  // libosc's function knows all rules
}

}  // namespace

namespace verified {

// Passes a call on a window that the checker does not watch.
#define OSC_VERIFY(name, kind, arguments)                                                           \
    const check::IgnoredScope ignored;                                                              \
    const auto below = [&] { return through(plugin::g_libosc.behind->name) arguments; };            \
    Window* const window = watched(win);                                                            \
    if (window == nullptr) return below();                                                          \
    Synchronisation call {                                                                          \
        .act = Act::kind, .call = "MPI_" #name, .site = check::site_of(__builtin_return_address(0)) \
    }

// A call at one target; nothing happens at MPI_PROC_NULL. `must_not` finds what libosc serves against the rules.
#define OSC_VERIFIED_ONE(name, act, must_not)                                           \
    int name(int rank, MPI_Win win) {                                                   \
        OSC_VERIFY(name, act, (rank, win));                                             \
        if (rank == MPI_PROC_NULL) return below();                                      \
        call.target = static_cast<std::uint32_t>(rank);                                 \
        const CallScope scope(call.site);                                               \
        report_unless_none(*window, "MPI_" #name, must_not(window->core, call.target)); \
        return synchronise(*window, call, below);                                       \
    }

int Win_fence(int assert, MPI_Win win) {
    OSC_VERIFY(Win_fence, Fence, (assert, win));
    call.exposes = (assert& MPI_MODE_NOSUCCEED) == 0;
    const std::uint64_t made = plugin::g_libosc.fences(window->core, 0);
    const int error = synchronise(*window, call, below);
    const CallScope scope(call.site);
    if (plugin::g_libosc.fences(window->core, made) != made)
        window->core.ledger->compare(false);  // no process has died
    return error;
}

int Win_post(MPI_Group group, int assert, MPI_Win win) {
    OSC_VERIFY(Win_post, Post, (group, assert, win));
    const Ranks ranks = ranks_of(*window, group);
    call.group = ranks;
    return synchronise(*window, call, below);
}

int Win_start(MPI_Group group, int assert, MPI_Win win) {
    OSC_VERIFY(Win_start, Start, (group, assert, win));
    const Ranks ranks = ranks_of(*window, group);
    call.group = ranks;
    return synchronise(*window, call, below);
}

int Win_test(MPI_Win win, int* flag) {
    OSC_VERIFY(Win_test, Wait, (win, flag));
    const CallScope scope(call.site);
    const int error = below();
    if (error == MPI_SUCCESS && *flag != 0) window->core.ledger->after(call);
    return error;
}

int Win_lock(int lock_type, int rank, int assert, MPI_Win win) {
    OSC_VERIFY(Win_lock, Lock, (lock_type, rank, assert, win));
    if (rank == MPI_PROC_NULL) return below();
    call.target = static_cast<std::uint32_t>(rank);
    call.exclusive = lock_type == MPI_LOCK_EXCLUSIVE;
    return synchronise(*window, call, below);
}

// A call without a target.
#define OSC_VERIFIED_ALL(name, act, parameters, arguments) \
    int name parameters {                                  \
        OSC_VERIFY(name, act, arguments);                  \
        return synchronise(*window, call, below);          \
    }

OSC_VERIFIED_ALL(Win_complete, Complete, (MPI_Win win), (win))
OSC_VERIFIED_ALL(Win_wait, Wait, (MPI_Win win), (win))
OSC_VERIFIED_ALL(Win_lock_all, LockAll, (int assert, MPI_Win win), (assert, win))
OSC_VERIFIED_ALL(Win_unlock_all, UnlockAll, (MPI_Win win), (win))
OSC_VERIFIED_ALL(Win_flush_all, Flush, (MPI_Win win), (win))
OSC_VERIFIED_ALL(Win_flush_local_all, FlushLocal, (MPI_Win win), (win))
OSC_VERIFIED_ALL(Win_sync, Sync, (MPI_Win win), (win))
OSC_VERIFIED_ONE(Win_unlock, Unlock, no_rule)
OSC_VERIFIED_ONE(Win_flush, Flush, plugin::g_libosc.must_not_flush)
OSC_VERIFIED_ONE(Win_flush_local, FlushLocal, plugin::g_libosc.must_not_flush)

}  // namespace verified
}  // namespace osc
