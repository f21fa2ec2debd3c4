// Sending what was filled or put by, as there is a place for it under way.
#include <algorithm>
#include <utility>

#include "transport/net/stream.h"

namespace osc::net {

// One that is not under way; null if all are.
template <class Slots>
auto* Stream::free_one(Slots& slots) {
    const auto found =
        std::ranges::find_if(slots, [](const auto& slot) { return slot.serial.load(std::memory_order_seq_cst) == 0; });
    return found == slots.end() ? nullptr : &*found;
}

// Of a dead target, too: what would go to it fails.
template <class Slots>
bool Stream::has_room(Slots& slots) const {
    return to_.dead.load(std::memory_order_acquire) || free_one(slots) != nullptr;
}

// Whether the target is known to be dead: then what would be sent fails at once.
bool Stream::lost() {
    if (!to_.dead.load(std::memory_order_acquire)) return false;
    failed(Status::PeerDied);
    return true;
}

void Stream::drop(Outgoing& message) {
    network_.give_back(std::exchange(message.message, nullptr));
    message.landings.clear();
    if (std::exchange(message.locks, false)) unconfirmed_.fetch_sub(1, std::memory_order_relaxed);
    for (const SharedTicket& ticket : message.tickets)
        ticket->end(Status::PeerDied);
    message.tickets.clear();
}

void Stream::launch(Outgoing& message) {
    Flight* const flight = lost() ? nullptr : free_one(flights_);
    if (flight == nullptr) return drop(message);
    flight->landings.swap(message.landings);
    flight->tickets.swap(message.tickets);
    flight->locks = std::exchange(message.locks, false);
    if (!flight->landings.empty()) local_.fetch_add(1, std::memory_order_relaxed);
    flight->serial.store(message.serial, std::memory_order_seq_cst);
    network_.request(to_, message.kind, window_, me_, std::exchange(message.message, nullptr), *flight, message.held);
}

// Ends the message that is being filled: it goes now, or is put by until there is room.
void Stream::dispatch(FrameKind kind, bool held) {
    if (filling_.message == nullptr) return;
    filling_.kind = kind;
    filling_.held = held;
    filling_.serial = ++serial_;
    records_ = 0;
    if (queue_.empty() && has_room(flights_)) return launch(filling_);
    queue_.push_back(std::exchange(filling_, {}));
    publish();
    advance();
}

// One put or get that is awaited next, and nothing else, goes directly: the provider takes less time to acknowledge it
// than two processes for a request and its reply, unless both fit slots. False if it is not so.
bool Stream::send_alone() {
    const bool put = last_.what == What::Put;
    const bool one = filling_.message != nullptr && records_ == 1 && !filling_.locks && filling_.tickets.empty() &&
                     queue_.empty() && parked_.empty() && ended(serial_);
    if (!one || protocol_ != Protocol::Auto || !described_ || description_.exposed == 0 || !lock_is_confirmed() ||
        last_.bytes > network_.endpoint().largest_transfer() ||
        (!put && (last_.what != What::Get || filling_.landings.front().copy != nullptr)) ||
        network_.fits_slot(put ? filling_.message->bytes : sizeof(ReplyHead) + last_.bytes))
        return false;
    Message* const alone = std::exchange(filling_.message, nullptr);
    records_ = 0;
    std::byte* const memory =
        put ? alone->body() + sizeof(Record) : static_cast<std::byte*>(filling_.landings.front().to);
    filling_.landings.clear();
    start_or_park({put, description_.base + static_cast<std::uint64_t>(last_.disp), description_.key, memory,
                   last_.bytes, nullptr, alone, nullptr, 0});
    advance();
    return true;
}

void Stream::send_off() {
    if (send_alone()) return;
    dispatch();
    advance();
}

// After a change of what is put by.
void Stream::publish() {
    queued_from_.store(queue_.empty() ? kNone : queue_.front().serial, std::memory_order_seq_cst);
    parked_from_.store(parked_.empty() ? kNone : parked_.front().serial, std::memory_order_seq_cst);
}

// Sends of what was put by, in its order, as much as there is room for; true if that is anything.
bool Stream::proceed() {
    bool any = false;
    no_room_ = false;
    if (queue_.empty() && !filling_.tickets.empty() && has_room(flights_)) dispatch();
    for (; !queue_.empty() && has_room(flights_); queue_.pop_front(), publish(), any = true)
        launch(queue_.front());
    for (; !parked_.empty() && lock_is_confirmed() && has_room(moves_); parked_.pop_front(), publish(), any = true) {
        no_room_ = !start(parked_.front());
        if (no_room_) break;
    }
    return any;
}

// Sends what can go; the rest is the backlog's.
void Stream::advance() {
    bool any = proceed();
    if (!enlisted_ && has_backlog()) {
        enlisted_ = true;
        network_.enlist(*this);
        any = proceed() || any;  // an event may have come before the network knew of this stream
    }
    if (any) network_.ring();
}

Backlog::Left Stream::resume() {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return Left::Busy;
    if (proceed()) network_.ring();
    if (has_backlog()) return no_room_ ? Left::Busy : Left::Work;
    enlisted_ = false;
    return Left::Nothing;
}

// False: the provider has no room.
bool Stream::start(const Piece& piece) {
    const bool refused = under_lock_ && lock_refused_.load(std::memory_order_relaxed);
    if (refused) failed(Status::HolderDied);
    Move* const move = refused || lost() ? nullptr : free_one(moves_);
    if (move == nullptr) {
        if (piece.ticket != nullptr) piece.ticket->end(refused ? Status::HolderDied : Status::PeerDied);
        if (piece.lent != nullptr) network_.give_back(piece.lent);
        return true;
    }
    move->entry = piece.entry;
    move->lent = piece.lent;
    move->ticket = piece.ticket;
    if (piece.entry != nullptr) regions_.use(*piece.entry);
    local_.fetch_add(1, std::memory_order_relaxed);
    move->serial.store(piece.serial, std::memory_order_seq_cst);
    const bool posted = piece.write
                            ? network_.write(move->transfer, piece.memory, piece.bytes, piece.address, piece.key)
                            : network_.read(move->transfer, piece.memory, piece.bytes, piece.address, piece.key);
    if (posted) return true;
    move->lent = nullptr;
    move->ticket = nullptr;
    if (piece.entry != nullptr) regions_.release(*piece.entry);
    local_.fetch_sub(1, std::memory_order_relaxed);
    move->serial.store(0, std::memory_order_seq_cst);
    return false;
}

void Stream::start_or_park(Piece&& piece) {
    piece.serial = ++serial_;
    if (parked_.empty() && lock_is_confirmed() && has_room(moves_) && start(piece)) return;
    parked_.push_back(std::move(piece));
    publish();
}

}  // namespace osc::net
