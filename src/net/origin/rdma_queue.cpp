#include "net/origin/rdma_queue.h"

#include <algorithm>
#include <utility>

#include "local/direct.h"

namespace osc::net {
namespace {

// A piece takes a millisecond of a slow network, and costs a call of the provider.
constexpr std::size_t kPiece = std::size_t{1} << 20;
// Of one stream, unless one piece is longer: enough that the network has the next piece when one ends.
constexpr std::size_t kMostInFlight = 4 * kPiece;

}  // namespace

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

// A place for a piece of the request; null: all are taken, enough bytes are in flight, or an atomic in flight must end
// first.
RdmaPlace* RdmaQueue::place_for(const RdmaRequest& request, std::size_t piece) {
    const std::size_t in_flight = bytes_in_flight_.load(std::memory_order_relaxed);
    if (in_flight > 0 && in_flight + piece > kMostInFlight) return nullptr;
    return conflicts(request) ? nullptr : free();
}

// Starts the pieces of a transfer, of which `request` keeps those that are not in flight. NoPlace: a place, or NoRoom:
// the provider's room, lacks. A transfer over an ended connection, or under a refused lock, fails.
RdmaQueue::Started RdmaQueue::start(RdmaRequest& request, bool refused) {
    const Status end = route_.to.end.load(std::memory_order_acquire);
    if (refused || end != Status::Done) {
        const Status status = refused ? Status::HolderDied : end;
        faults_.note(status);
        if (request.completion != nullptr) request.completion->end(status);
        if (request.lent != nullptr) route_.network.sender.give_back(request.lent);
        return Started::Yes;
    }
    const std::size_t most = std::min(kPiece, route_.network.endpoint().largest_transfer());
    for (;;) {
        const std::size_t piece = request.is_update() ? request.bytes : std::min(request.bytes, most);
        const bool last = piece == request.bytes;
        if (const Started started = start_piece(request, piece); last || started != Started::Yes) return started;
        request.address += piece;
        request.memory += piece;
        request.bytes -= piece;
    }
}

// Starts the first bytes of a transfer; all of them move the request into its place.
RdmaQueue::Started RdmaQueue::start_piece(RdmaRequest& request, std::size_t piece) {
    RdmaPlace* const place = place_for(request, piece);
    if (place == nullptr) return Started::NoPlace;
    const bool last = piece == request.bytes;
    if (request.entry != nullptr) regions_.use(*request.entry);
    active_.fetch_add(1, std::memory_order_relaxed);
    bytes_in_flight_.fetch_add(piece, std::memory_order_relaxed);
    if (last) {
        place->request = std::move(request);
    } else {
        place->request = {request.write, request.address, request.key,        request.memory, piece,
                          request.entry, nullptr,         request.completion, request.serial};
        if (request.completion != nullptr) request.completion->begin();
    }
    place->serial.store(place->request.serial, std::memory_order_seq_cst);
    if (post(*place)) return Started::Yes;
    if (place->request.entry != nullptr) regions_.release(*place->request.entry);
    if (last)
        request = std::move(place->request);
    else if (const SharedCompletion completion = std::move(place->request.completion); completion != nullptr)
        completion->end(Status::Done);
    active_.fetch_sub(1, std::memory_order_relaxed);
    bytes_in_flight_.fetch_sub(piece, std::memory_order_relaxed);
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
    queue.bytes_in_flight_.fetch_sub(request.bytes, std::memory_order_relaxed);
    queue.active_.fetch_sub(1, std::memory_order_release);
    if (request.lent != nullptr) queue.route_.network.sender.give_back(request.lent);
    place.serial.exchange(0, std::memory_order_seq_cst);
}

}  // namespace osc::net
