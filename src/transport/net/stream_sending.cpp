// Sending what was filled or put by, as there is a place for it under way.
#include <algorithm>
#include <utility>

#include "transport/net/stream.h"

namespace osc::net {

template <class Slots>
bool Stream::has_free(const Slots& slots) {
    for (const auto& slot : slots)
        if (!slot.busy.load(std::memory_order_seq_cst)) return true;
    return false;
}

// Called after long waits, for one of several: the network ends them if the target is gone.
bool Stream::given_up() {
    return !network_.alive(to_) && abandoned_;
}

// One that is not under way, waiting until there is one; null if the target is gone and all are left to the provider.
template <class Slots>
auto* Stream::free_one(Slots& slots) {
    typename Slots::value_type* found = nullptr;
    const auto look = [&] {
        for (auto& slot : slots)
            if (!slot.busy.load(std::memory_order_seq_cst)) found = &slot;
        return found != nullptr;
    };
    network_.wait(look, [&] { return given_up(); });
    if (found != nullptr) found->busy.store(true, std::memory_order_relaxed);
    return found;
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

void Stream::launch(Outgoing& message, FrameKind kind, bool held) {
    Flight* const flight = lost() ? nullptr : free_one(flights_);
    if (flight == nullptr) return drop(message);
    flight->landings.swap(message.landings);
    flight->tickets.swap(message.tickets);
    flight->locks = std::exchange(message.locks, false);
    if (!flight->landings.empty()) local_.fetch_add(1, std::memory_order_relaxed);
    under_way_.fetch_add(1, std::memory_order_relaxed);
    network_.request(to_, kind, window_, me_, std::exchange(message.message, nullptr), *flight, held);
}

void Stream::push(FrameKind kind, bool held) {
    for (; !queue_.empty(); queue_.pop_front())
        launch(queue_.front(), FrameKind::Request);
    if (filling_.message == nullptr) return;
    launch(filling_, kind, held);
    records_ = 0;
}

// One put or get that is awaited next, and nothing else, goes directly: the provider takes less time to acknowledge it
// than two processes for a request and its reply, unless both fit slots. False if it is not so.
bool Stream::send_alone() {
    const bool put = last_.what == What::Put;
    const bool one = filling_.message != nullptr && records_ == 1 && !filling_.locks && filling_.tickets.empty() &&
                     queue_.empty() && alone_ == nullptr && under_way_.load(std::memory_order_acquire) == 0;
    if (!one || protocol_ != Protocol::Auto || !described_ || description_.exposed == 0 || !lock_is_confirmed() ||
        (!put && (last_.what != What::Get || filling_.landings.front().copy != nullptr)) ||
        network_.fits_slot(put ? filling_.message->bytes : sizeof(ReplyHead) + last_.bytes))
        return false;
    alone_ = std::exchange(filling_.message, nullptr);
    records_ = 0;
    std::byte* const memory =
        put ? alone_->body() + sizeof(Record) : static_cast<std::byte*>(filling_.landings.front().to);
    filling_.landings.clear();
    start({put, description_.base + static_cast<std::uint64_t>(last_.disp), description_.key, memory, last_.bytes,
           nullptr, nullptr});
    return true;
}

void Stream::send_off() {
    if (!send_alone()) push();
}

// Ends the message that is being filled, without waiting for a place under way.
void Stream::put_by() {
    if (filling_.message == nullptr) return;
    if (queue_.size() >= kPutBy) return push();
    queue_.push_back(std::exchange(filling_, {}));
    records_ = 0;
    advance();
}

// Sends of what was put by, in its order, as much as there is a place for.
void Stream::advance() {
    const auto room = [&](const auto& slots) { return to_.dead.load(std::memory_order_acquire) || has_free(slots); };
    for (; !queue_.empty() && room(flights_); queue_.pop_front())
        launch(queue_.front(), FrameKind::Request);
    if (queue_.empty() && !filling_.tickets.empty() && room(flights_)) push();
    for (; !parked_.empty() && lock_is_confirmed() && room(moves_); parked_.pop_front())
        start(parked_.front());
}

void Stream::start(const Piece& piece) {
    const bool refused = under_lock_ && lock_refused_.load(std::memory_order_relaxed);
    if (refused) failed(Status::HolderDied);
    Move* const move = refused || lost() ? nullptr : free_one(moves_);
    if (move == nullptr) {
        if (piece.ticket != nullptr) piece.ticket->end(refused ? Status::HolderDied : Status::PeerDied);
        return;
    }
    move->entry = piece.entry;
    move->ticket = piece.ticket;
    if (piece.entry != nullptr) regions_.use(*piece.entry);
    under_way_.fetch_add(1, std::memory_order_relaxed);
    local_.fetch_add(1, std::memory_order_relaxed);
    if (piece.write)
        network_.write(move->transfer, piece.memory, piece.bytes, piece.address, piece.key);
    else
        network_.read(move->transfer, piece.memory, piece.bytes, piece.address, piece.key);
}

void Stream::transfer(bool write, std::uint64_t address, std::uint64_t key, void* memory, std::size_t bytes,
                      RegionCache::Entry* entry) {
    // What was asked for before must hold first: the lock, and the target's fence.
    if (fence_.load(std::memory_order_relaxed) != awaited_fence_ && filling_.message == nullptr) begin();
    const bool later = ticket_ != nullptr && entry == nullptr;
    if (later) {
        put_by();
    } else {
        push();
        confirm_lock();
    }
    mark();
    direct_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    for (std::size_t done = 0; done < bytes;) {
        const std::size_t part = std::min(bytes - done, network_.endpoint().largest_transfer());
        if (ticket_ != nullptr) ticket_->begin();
        const Piece piece{write, address + done, key, static_cast<std::byte*>(memory) + done, part, entry, ticket_};
        if (later)
            parked_.push_back(piece);
        else
            start(piece);
        done += part;
    }
    advance();
}

}  // namespace osc::net
