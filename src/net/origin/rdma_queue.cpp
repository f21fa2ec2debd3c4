#include "net/origin/rdma_queue.h"

#include <algorithm>
#include <utility>

#include "local/direct.h"

namespace osc::net {

RdmaQueue::RdmaQueue(const StreamRoute& route, StreamFault& faults, RegionCache& regions)
    : StreamQueue(route, faults), regions_(regions) {
    for (RdmaPlace& place : places_) {
        place.transfer.connection = &route_.to;
        place.transfer.owner = this;
        place.transfer.ended = &RdmaQueue::transfer_ended;
    }
}

void RdmaQueue::add(RdmaRequest&& request, bool confirmed, bool refused) {
    request.serial = ++serial_;
    if (waiting() == 0 && confirmed && start(request, refused) == Started::Yes) return;
    push(std::move(request));
}

bool RdmaQueue::proceed(bool confirmed, bool refused) {
    bool any = false;
    no_room_ = false;
    while (waiting() > 0 && confirmed) {
        const Started started = start(waiting_.front(), refused);
        no_room_ = started == Started::NoRoom;
        if (started != Started::Yes) break;
        pop();
        any = true;
    }
    return any;
}

// Whether an atomic in flight updates elements of this one.
bool RdmaQueue::conflicts(const RdmaRequest& request) {
    if (!request.is_update()) return false;
    return std::ranges::any_of(places_, [&](const RdmaPlace& place) {
        const RdmaRequest& other = place.request;
        return place.serial.load(std::memory_order_seq_cst) != 0 && other.is_update() &&
               other.address < request.address + request.bytes && request.address < other.address + other.bytes;
    });
}

bool RdmaQueue::post(RdmaPlace& place) {
    Rdma& rdma = route_.network.rdma;
    const RdmaRequest& it = place.request;
    if (it.is_update()) return rdma.update(place.transfer, it.update->row, it.address, it.key);
    return it.write ? rdma.write(place.transfer, it.memory, it.bytes, it.address, it.key)
                    : rdma.read(place.transfer, it.memory, it.bytes, it.address, it.key);
}

// NoPlace: all places are taken, or an atomic in flight must end first. NoRoom: the provider has none. A transfer over
// an ended connection, or under a refused lock, fails.
RdmaQueue::Started RdmaQueue::start(RdmaRequest& request, bool refused) {
    const Status end = route_.to.end.load(std::memory_order_acquire);
    if (refused || end != Status::Done) {
        const Status status = refused ? Status::HolderDied : end;
        faults_.note(status);
        if (request.completion != nullptr) request.completion->end(status);
        if (request.lent != nullptr) route_.network.sender.give_back(request.lent);
        return Started::Yes;
    }
    RdmaPlace* const place = conflicts(request) ? nullptr : free();
    if (place == nullptr) return Started::NoPlace;
    if (request.entry != nullptr) regions_.use(*request.entry);
    active_.fetch_add(1, std::memory_order_relaxed);
    place->request = std::move(request);
    place->serial.store(place->request.serial, std::memory_order_seq_cst);
    if (post(*place)) return Started::Yes;
    request = std::move(place->request);
    if (request.entry != nullptr) regions_.release(*request.entry);
    active_.fetch_sub(1, std::memory_order_relaxed);
    place->serial.store(0, std::memory_order_seq_cst);
    return Started::NoRoom;
}

// Called by the thread that polls or posts, without the stream's mutex.
void RdmaQueue::transfer_ended(Transfer& transfer, Status status) {
    auto& place = reinterpret_cast<RdmaPlace&>(transfer);
    auto& queue = *static_cast<RdmaQueue*>(transfer.owner);
    RdmaRequest& request = place.request;
    queue.faults_.note(status);
    if (request.entry != nullptr) queue.regions_.release(*request.entry);
    if (const std::unique_ptr<RowUpdate> update = std::move(request.update);
        update != nullptr && update->result != nullptr && status == Status::Done)
        shm::move_bytes(update->result, update->row.before(), update->row.bytes);
    if (const SharedCompletion completion = std::move(request.completion); completion != nullptr)
        completion->end(status);
    queue.active_.fetch_sub(1, std::memory_order_release);
    if (request.lent != nullptr) queue.route_.network.sender.give_back(request.lent);
    place.serial.exchange(0, std::memory_order_seq_cst);
}

}  // namespace osc::net
