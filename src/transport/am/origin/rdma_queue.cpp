#include "transport/am/origin/rdma_queue.h"

#include <utility>

namespace osc::am {

RdmaQueue::RdmaQueue(NetworkStack& network, Connection& to, FirstFault& faults, RegionCache& regions)
    : network_(network), to_(to), faults_(faults), regions_(regions) {
    for (Place& place : flight_) {
        place.transfer.connection = &to_;
        place.transfer.owner = this;
        place.transfer.ended = &RdmaQueue::ended;
    }
}

void RdmaQueue::add(RdmaRequest&& request, bool may_start, bool refused) {
    request.serial = ++serial_;
    if (deferred() == 0 && may_start && has_room() && start(request, refused)) return;
    waiting_.push_back(std::move(request));
    publish();
}

bool RdmaQueue::proceed(bool may_start, bool refused) {
    bool any = false;
    no_room_ = false;
    while (deferred() > 0 && may_start && has_room()) {
        no_room_ = !start(waiting_.front(), refused);
        if (no_room_) break;
        waiting_.pop_front();
        publish();
        any = true;
    }
    return any;
}

void RdmaQueue::publish() {
    waiting_from_.store(deferred() > 0 ? waiting_.front().serial : kNone, std::memory_order_seq_cst);
}

// Returns false if the provider has no room. A transfer to a dead target, or under a refused lock, fails.
bool RdmaQueue::start(const RdmaRequest& request, bool refused) {
    const bool dead = to_.dead.load(std::memory_order_acquire);
    Place* const place = refused || dead ? nullptr : flight_.free();
    if (place == nullptr) {
        const Status status = refused ? Status::HolderDied : Status::PeerDied;
        faults_.note(status);
        if (request.completion != nullptr) request.completion->end(status);
        if (request.lent != nullptr) network_.sender.give_back(request.lent);
        return true;
    }
    place->entry = request.entry;
    place->lent = request.lent;
    place->completion = request.completion;
    if (request.entry != nullptr) regions_.use(*request.entry);
    active_.fetch_add(1, std::memory_order_relaxed);
    place->serial.store(request.serial, std::memory_order_seq_cst);
    Rdma& rdma = network_.rdma;
    const bool posted = request.write
                            ? rdma.write(place->transfer, request.memory, request.bytes, request.address, request.key)
                            : rdma.read(place->transfer, request.memory, request.bytes, request.address, request.key);
    if (posted) return true;
    place->lent = nullptr;
    place->completion = nullptr;
    if (request.entry != nullptr) regions_.release(*request.entry);
    active_.fetch_sub(1, std::memory_order_relaxed);
    place->serial.store(0, std::memory_order_seq_cst);
    return false;
}

// Called by the thread that polls or posts, without the stream's mutex.
void RdmaQueue::ended(Transfer& transfer, int error) {
    auto& place = reinterpret_cast<Place&>(transfer);
    auto& queue = *static_cast<RdmaQueue*>(transfer.owner);
    if (error != 0) queue.faults_.note(status_of(error));
    if (place.entry != nullptr) queue.regions_.release(*place.entry);
    if (const SharedCompletion completion = std::move(place.completion); completion != nullptr)
        completion->end(status_of(error));
    queue.active_.fetch_sub(1, std::memory_order_release);
    if (Message* const lent = std::exchange(place.lent, nullptr); lent != nullptr)
        queue.network_.sender.give_back(lent);
    place.serial.exchange(0, std::memory_order_seq_cst);
}

}  // namespace osc::am
