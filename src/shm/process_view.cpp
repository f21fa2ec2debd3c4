#include "shm/process_view.h"

#include <unistd.h>

#include "base/process_state.h"

namespace osc::shm {
namespace {

ProcessView view(const Activity& activity) {
    return {.wait = activity.note(),
            .identity = activity.identity.load(std::memory_order_relaxed),
            .host_polls = activity.host_polls.load(std::memory_order_relaxed),
            .counts_polls = activity.counts_polls.load(std::memory_order_relaxed)};
}

}  // namespace

ProcessView view_of(PeerArena& peer) {
    ProcessView seen;
    if (const std::byte* const header = peer.map(0, sizeof(ArenaHeader)); header != nullptr)
        seen = view(reinterpret_cast<const ArenaHeader*>(header)->activity);
    if (peer.adopted()) {  // a process of another PID namespace: its numbers mean nothing here
        seen.state = peer.owner_lives() ? U'?' : U'X';
        return seen;
    }
    const base::ProcessState state = base::process_state(peer.address().pid);
    const std::uint64_t started = peer.address().start_time;
    const bool ended = state.state != '?' && started != base::kUnknownStart && state.start_time != started;
    seen.pid = peer.address().pid;
    seen.state = ended ? 'X' : static_cast<unsigned char>(state.state);
    seen.cpu_ticks = state.cpu_ticks;
    return seen;
}

ProcessView view_of_self() {
    ProcessView seen = view(my_activity());
    seen.pid = ::getpid();
    seen.state = 'R';
    return seen;
}

}  // namespace osc::shm
