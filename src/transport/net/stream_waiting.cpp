// Waiting for what a stream has under way: without its mutex, which other threads may need to go on.
#include <algorithm>
#include <cstring>
#include <utility>

#include "transport/net/stream.h"

namespace osc::net {

// Releases the mutex for wait(). What belongs to the operation of this thread is put aside: other threads' operations
// may come in between.
template <class Wait>
void Stream::while_released(Wait&& wait) {
    SharedTicket ticket = std::move(ticket_);
    ticket_ = nullptr;
    const bool answers = std::exchange(answers_now_, false);
    mutex_.unlock();
    wait();
    mutex_.lock();
    ticket_ = std::move(ticket);
    answers_now_ = answers;
}

// A dead peer's requests are ended by the network at once, its transfers by the provider; what that does not end within
// a second is left to it for ever, with the memory that it may still touch.
template <class Done>
void Stream::wait_until(Done&& done) {
    const auto over = [&] { return abandoned_.load(std::memory_order_acquire) || done(); };
    if (over()) return;
    bool ended = false;
    while_released([&] {
        std::int64_t since = 0;
        ended = network_.wait(over, [&] { return gone(since); });
    });
    if (ended) return;
    abandoned_.store(true, std::memory_order_release);
    failed(Status::PeerDied);
    advance();
}

// Whether nothing is left of what had this serial number or a lower one. Without the mutex.
bool Stream::ended(std::uint64_t serial) const {
    if (queued_from_.load(std::memory_order_seq_cst) <= serial ||
        parked_from_.load(std::memory_order_seq_cst) <= serial)
        return false;
    const auto over = [&](const auto& slot) {
        const std::uint64_t its = slot.serial.load(std::memory_order_seq_cst);
        return its == 0 || its > serial;
    };
    return std::ranges::all_of(flights_, over) && std::ranges::all_of(moves_, over);
}

void Stream::await_issued() {
    const std::uint64_t issued = serial_;
    wait_until([this, issued] { return ended(issued); });
}

// Sends what is filled, and waits until it is under way: a thread that issues faster than the target answers is held
// up.
void Stream::push(FrameKind kind) {
    dispatch(kind);
    const std::uint64_t issued = serial_;
    wait_until([this, issued] { return queued_from_.load(std::memory_order_seq_cst) > issued; });
}

void Stream::confirm_lock() {
    if (lock_is_confirmed()) return;
    push();
    wait_until([this] { return lock_is_confirmed(); });
}

// Ends the message that is being filled, without waiting for a place under way.
void Stream::put_by() {
    if (filling_.message == nullptr) return;
    if (queue_.size() >= kPutBy)
        push();
    else
        dispatch();
}

void Stream::transfer(bool write, std::uint64_t address, std::uint64_t key, void* memory, std::size_t bytes,
                      RegionCache::Entry* entry) {
    // What was asked for before must hold first: the lock, and the target's fence.
    if (fence_.load(std::memory_order_relaxed) != awaited_fence_ && filling_.message == nullptr) begin();
    if (ticket_ != nullptr && entry == nullptr)
        put_by();
    else
        push();
    mark();
    direct_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    for (std::size_t done = 0; done < bytes;) {
        const std::size_t part = std::min(bytes - done, network_.endpoint().largest_transfer());
        if (ticket_ != nullptr) ticket_->begin();
        start_or_park(
            {write, address + done, key, static_cast<std::byte*>(memory) + done, part, entry, nullptr, ticket_, 0});
        done += part;
    }
    advance();
    // The caller is about to release the entry. A few others may wait, for the lock or for room, after this call.
    if (entry == nullptr && (ticket_ != nullptr || parked_.size() <= kMoves)) return;
    const std::uint64_t issued = serial_;
    wait_until([this, issued] { return parked_from_.load(std::memory_order_seq_cst) > issued; });
}

Fault Stream::settle() {
    send_off();
    await_issued();
    // Other threads may have issued more meanwhile, which they settle.
    const bool nothing = filling_.message == nullptr && !has_backlog() && ended(serial_);
    if ((nothing || abandoned_) && std::exchange(marked_, false)) unsettled_.fetch_sub(1, std::memory_order_seq_cst);
    return take_fault();
}

// Whether something that is not ended reads or writes this process's memory.
bool Stream::uses_memory() const {
    if (!filling_.landings.empty() || !parked_.empty()) return true;
    // What was put by goes under way before it leaves the queue, so the look at the other comes last.
    const bool queued = std::ranges::any_of(queue_, [](const Outgoing& message) { return !message.landings.empty(); });
    return queued || local_.load(std::memory_order_acquire) != 0;
}

Fault Stream::settle_local() {
    return uses_memory() ? settle() : take_fault();
}

void Stream::forget_results() {
    const std::lock_guard lock(mutex_);
    for (Flight& flight : flights_) {
        if (flight.landings.empty()) continue;
        flight.landings.clear();
        local_.fetch_sub(1, std::memory_order_relaxed);
    }
    for (Outgoing& message : queue_)
        message.landings.clear();
    filling_.landings.clear();
}

bool Stream::abandon() {
    if (!abandoned_) return false;
    network_.withdraw(*this);
    return true;
}

bool Stream::begin_question() {
    bool waited = false;
    while (questioned_.exchange(true, std::memory_order_acquire)) {
        waited = true;
        while_released(
            [&] { network_.wait([&] { return !questioned_.load(std::memory_order_seq_cst); }, [] { return false; }); });
    }
    return waited;
}

void Stream::end_question() {
    questioned_.exchange(false, std::memory_order_seq_cst);
    network_.ring();
}

Fault Stream::ask(const Record& record, void* to) {
    if (lost()) return take_fault();
    Message* message = network_.claim();
    std::memcpy(message->body(), &record, sizeof record);
    message->bytes = sizeof record;
    reply_.to = to;
    reply_.bytes = returned(record);
    reply_.open.store(true, std::memory_order_relaxed);
    network_.request(to_, FrameKind::Query, window_, me_, message, reply_);
    // Never given up: if the target is gone, the network answers in its place.
    while_released([&] {
        network_.wait([&] { return !reply_.open.load(std::memory_order_seq_cst); },
                      [&] {
                          network_.alive(to_);
                          return false;
                      });
    });
    return agent::fault_of(reply_.status, target_);
}

Fault Stream::describe(Description& description) {
    if (!described_) {
        const Question question(*this);
        if (!described_)
            if (const Fault fault = ask({What::Describe, Basic::None, Op::None, 0, 0, 0}, &description_);
                fault != Fault::None)
                return fault;
        described_ = true;
    }
    description = description_;
    return Fault::None;
}

}  // namespace osc::net
