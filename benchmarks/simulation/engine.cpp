// Simulated time advances from event to event: a message arrives, or a process takes the next message from its queue.
#include "engine.h"

namespace simulation {

void Engine::send(Message message, std::size_t bytes) {
    State& sender = states_[message.from];
    double arrives = sender.free;
    if (message.by != By::Itself) {
        const Costs& cost = costs(message.by);
        sender.free += cost.send;
        arrives = sender.free + cost.way + cost.byte * static_cast<double>(bytes);
    }
    if (message.by == By::Libosc) ++sent_;
    std::uint32_t index = 0;
    if (unused_.empty()) {
        index = static_cast<std::uint32_t>(messages_.size());
        messages_.push_back(message);
    } else {
        index = unused_.back();
        unused_.pop_back();
        messages_[index] = message;
    }
    messages_[index].behind = 0;
    post(arrives, index, true);
}

void Engine::arrive(std::uint32_t index, double at) {
    const Process to = messages_[index].to;
    State& receiver = states_[to];
    if (receiver.first == 0) {
        receiver.first = index;
        post(std::max(at, receiver.free), to, false);
    } else {
        messages_[receiver.last].behind = index;
    }
    receiver.last = index;
}

void Engine::take(Process process, double at, Protocol& protocol) {
    State& receiver = states_[process];
    if (receiver.free > at) return post(receiver.free, process, false);
    const std::uint32_t index = receiver.first;
    const Message message = messages_[index];
    receiver.first = message.behind;
    unused_.push_back(index);
    receiver.free = at + (message.by == By::Itself ? 0 : costs(message.by).receive);
    protocol.arrived(message);
    if (receiver.first != 0) post(receiver.free, process, false);
}

void Engine::run(Protocol& protocol) {
    for (Process process = 0; process < processes(); ++process)
        protocol.begin(process);
    while (!events_.empty()) {
        const Event event = events_.top();
        events_.pop();
        if (event.arrives)
            arrive(event.index, event.at);
        else
            take(event.index, event.at, protocol);
    }
}

double Engine::end() const {
    double last = 0;
    for (const State& state : states_)
        last = std::max(last, state.free);
    return last;
}

}  // namespace simulation
