// Questions of the hang reporter to other nodes. Network threads answer them, so no peer's program needs to help.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "net/target/inspection.h"
#include "window/window.h"

namespace osc::report {

struct Inquiry {
    net::InspectQuestion question;
    std::uint32_t first;   // the process that is asked
    std::uint32_t second;  // the one that is asked too if the first does not answer soon; equal to `first`: none
};

/// Asks all at the same time, and polls the network until all are answered, or for 1.5 s. The answers in the same
/// order; none from processes that did not answer.
std::vector<std::optional<net::Inspection>> ask(Window& window, std::span<const Inquiry> inquiries);

/// Another process of the node of `rank`, or `rank`.
std::uint32_t neighbour_of(const net::Job& job, std::uint32_t rank);

}  // namespace osc::report
