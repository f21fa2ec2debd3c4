// Operations whose end is asked for by itself.
#include <utility>

#include "transport/net/stream.h"

namespace osc::net {
namespace {

constexpr std::int64_t kAskEvery = 100000000;  // ns between signs of life that look() asks for
constexpr std::int64_t kLeftTo = 1000000000;   // ns that the provider has to end what goes to the dead

}  // namespace

SharedTicket Stream::issue() {
    ticket_ = std::make_shared<Ticket>();
    return ticket_;
}

void Stream::issued() {
    std::exchange(ticket_, nullptr)->end(Status::Done);
}

// Whether the target is dead for so long that what is left to the provider will not end.
bool Stream::gone(std::int64_t& since) {
    if (network_.alive(to_)) {
        since = 0;
        return false;
    }
    const std::int64_t now = now_ns();
    if (since == 0) since = now;
    return now - since > kLeftTo;
}

bool Stream::look(Ticket& ticket) {
    if (ticket.ended()) return true;
    network_.poll();
    if (ticket.ended()) return true;
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (const std::int64_t now = now_ns(); lock.owns_lock() && now - looked_ > kAskEvery) {
        looked_ = now;
        if (gone(gone_since_)) ticket.give_up();
    }
    return ticket.ended();
}

void Stream::await(Ticket& ticket) {
    std::int64_t since = 0;
    if (!network_.wait([&] { return ticket.ended(); }, [&] { return gone(since); })) ticket.give_up();
}

}  // namespace osc::net
