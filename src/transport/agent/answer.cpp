// The wait for an agent.
#include "transport/agent/answer.h"

namespace osc::agent {
namespace {

constexpr int kPolls = 150;  // some microseconds: an agent that is awake on another core has answered by then

// Waits for an agent that may have been woken on this very core: it runs only when this thread sleeps, so that more
// polling, and yielding on a busy machine, would delay the answer. Bounded; the common wait loop does the rest.
template <class Done>
void nap(shm::Doorbell& bell, Done&& done) {
    for (int i = 0; i < kPolls; ++i) {
        if (done()) return;
        shm::cpu_relax();
    }
    const std::uint32_t seen = bell.word.load(std::memory_order_seq_cst);
    bell.sleepers.fetch_add(1, std::memory_order_seq_cst);
    if (!done()) shm::futex_wait(bell.word, seen, 1);
    bell.sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

}  // namespace

bool await_answer(Slot& slot, const Mailbox& box, const shm::PeerArena& arena) {
    const auto done = [&] { return slot.state.load(std::memory_order_seq_cst) == SlotState::Answered; };
    nap(slot.bell, done);
    return shm::wait_until(slot.bell, done, [&] { return !agent_alive(box, arena); });
}

Fault not_answered(std::uint32_t rank) {
    return diag::fail(Fault::Dead, "rank %u, or its agent, ended before it had answered", rank);
}

}  // namespace osc::agent
