// The way to targets of other nodes: the stream to the target's process. In windows whose accumulates go by the network
// provider's atomics, a second object of this class is the way of the accumulates to all targets, those of this node
// included.
#pragma once

#include <mutex>

#include "reach/reach.h"
#include "transport/am/origin/provider_atomics.h"
#include "transport/am/origin/remote_window.h"

namespace osc::reach {

class Net final : public Reach {
  public:
    /// `dynamic`: targets have attached regions. `atomics`: not null for the way of accumulates by the provider.
    Net(am::RemoteWindow& window, bool dynamic, const am::AtomicsTable* atomics = nullptr)
        : window_(window), dynamic_(dynamic), atomics_(atomics) {}

    Outcome perform(Peer& target, const op::Call& call, const Update& what, const Extras& extras) override;
    Fault admit(Peer& target, const op::Call& call, bool& nothing) override;
    Fault complete(std::uint32_t rank, Completion until) override {
        return until == Completion::AtTarget ? window_.complete_ops(rank) : window_.complete_local(rank);
    }
    bool send(Peer& target, const op::Simple& operation, bool threaded) override;

    /// The number of notification counters of a target, which answers.
    Fault count_counters(Peer& target, std::uint32_t& count);

  private:
    // A stream that is locked for one operation, and the operation's first byte.
    struct Opened {
        am::Stream* stream = nullptr;
        std::unique_lock<std::mutex> lock;
        std::int64_t start = 0;
        bool nothing = false;
    };
    am::Stream* find_stream(Peer& target);
    Fault open(Peer& target, const op::Call& call, Opened& opened);
    bool goes_by_provider(const Update& what) const;

    am::RemoteWindow& window_;
    const bool dynamic_;
    const am::AtomicsTable* const atomics_;
};

}  // namespace osc::reach
