// Waiting for an agent's answer.
#pragma once

#include "agent/mailbox.h"
#include "diag/fault.h"

namespace osc::agent {

/// Waits until the message in `slot`, which was pushed to `box` of `arena`, is answered; false if the agent has ended
/// before.
bool await_answer(Slot& slot, const Mailbox& box, const shm::PeerArena& arena);

/// The fault of a message that was not answered.
Fault not_answered(std::uint32_t rank);

}  // namespace osc::agent
