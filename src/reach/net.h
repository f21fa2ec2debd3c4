// The way to targets of other nodes: the stream to the target's process. In windows whose accumulates go by the network
// provider's atomics, a second object of this class is the way of the accumulates to all targets, those of this node
// included.
#pragma once

#include <mutex>

#include "net/origin/provider_atomics.h"
#include "net/origin/remote_window.h"
#include "reach/reach.h"

namespace osc::reach {

class Net final : public Reach {
  public:
    /// `dynamic`: targets have attached regions. `threaded`: other threads may use the window. `atomics`: not null for
    /// the way of accumulates by the provider. `refuses_others`: accumulates that the provider lacks may meet its own
    /// at an element.
    Net(net::RemoteWindow& window, bool dynamic, bool threaded, const net::AtomicsTable* atomics = nullptr,
        bool refuses_others = false)
        : window_(window), dynamic_(dynamic), threaded_(threaded), atomics_(atomics), refuses_others_(refuses_others) {}

    Outcome simple(Target& target, const op::Simple& what, bool prepared) override;
    Outcome perform(Target& target, const op::Call& call, const Update& what, const Extras& extras) override;
    Outcome admit(Target& target, const op::Call& call, const Update& what) override;
    Fault complete(std::uint32_t rank, Completion until) override {
        return until == Completion::AtTarget ? window_.complete_ops(rank) : window_.complete_local(rank);
    }

    /// The number of notification counters of a target, which answers.
    Fault count_counters(Target& target, std::uint32_t& count);

  private:
    // A stream that is locked for one operation, and the operation's first byte.
    struct Opened {
        net::Stream* stream = nullptr;
        std::unique_lock<std::mutex> lock;
        std::int64_t start = 0;
        bool nothing = false;
    };
    net::Stream* find_stream(Target& target);
    Fault open(Target& target, const op::Call& call, const Update& what, Opened& opened);

    net::RemoteWindow& window_;
    const bool dynamic_;
    const bool threaded_;
    const net::AtomicsTable* const atomics_;
    const bool refuses_others_;
};

}  // namespace osc::reach
