#include "net/origin/send_queue.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "local/direct.h"

namespace osc::net {

SendQueue::SendQueue(const StreamRoute& route, StreamFault& faults)
    : StreamQueue(route, faults), body_(route.network.largest_body()) {
    for (MessagePlace& place : places_)
        place.queue = this;
}

void SendQueue::begin() {
    filling_.message = route_.network.sender.claim();
    returning_ = 0;
    records_ = 0;
}

void SendQueue::open_fence(std::uint64_t fence) {
    const Record open{Opcode::FenceOpen, Basic::None, Op::None, 0, 0, static_cast<std::int64_t>(fence)};
    std::memcpy(filling_.message->body(), &open, sizeof open);
    filling_.message->bytes = sizeof open;
    must_confirm();
}

std::byte* SendQueue::append(const Record& record, std::size_t carries, std::size_t returns) {
    const std::size_t needed = sizeof(Record) + padded(carries);
    const std::size_t back = padded(returns);
    std::byte* at = filling_.message->body() + bytes();
    std::memcpy(at, &record, sizeof record);
    if (carries % kAlign != 0) std::memset(at + needed - kAlign, 0, kAlign);
    filling_.message->bytes += needed;
    if (is_operation(record.opcode)) traffic_ += needed + back;
    returning_ += back;
    ++records_;
    last_ = record;
    return at + sizeof(Record);
}

bool SendQueue::extend_put(std::int64_t disp, const std::byte* data, std::size_t more) {
    const bool follows = disp == last_.disp + static_cast<std::int64_t>(last_.bytes) && filling() && records_ > 0 &&
                         last_.opcode == Opcode::Put && last_.flags == 0 && last_.bytes % kAlign == 0;
    if (!follows || bytes() + padded(more) > body_) return false;
    std::byte* const end = filling_.message->body() + bytes();
    std::byte* const record = end - last_.bytes - sizeof(Record);
    last_.bytes += static_cast<std::uint32_t>(more);
    std::memcpy(record, &last_, sizeof last_);
    if (more % kAlign != 0) std::memset(end + padded(more) - kAlign, 0, kAlign);
    shm::move_bytes(end, data, more);
    filling_.message->bytes += padded(more);
    traffic_ += padded(more);
    return true;
}

void SendQueue::expect(const ReplySegment& segment, const SharedCompletion& completion) {
    filling_.segments.push_back(segment);
    if (completion == nullptr || (awaits_completion() && filling_.completions.back() == completion)) return;
    completion->begin();
    filling_.completions.push_back(completion);
}

void SendQueue::must_confirm() {
    if (!std::exchange(filling_.confirms, true)) unconfirmed_.fetch_add(1, std::memory_order_relaxed);
}

bool SendQueue::has_only_record() const {
    if (!filling() || records_ != 1 || last_.flags != 0 || filling_.confirms || awaits_completion() || waiting() > 0)
        return false;
    return last_.opcode == Opcode::Put || (last_.opcode == Opcode::Get && filling_.segments.front().copy == nullptr);
}

Message* SendQueue::take_only_record(std::byte*& memory) {
    Message* const message = std::exchange(filling_.message, nullptr);
    memory = last_.opcode == Opcode::Put ? message->body() + sizeof(Record)
                                         : static_cast<std::byte*>(filling_.segments.front().to);
    filling_.segments.clear();
    traffic_ -= std::min<std::uint64_t>(traffic_, sizeof(Record) + padded(last_.bytes));
    records_ = 0;
    soon_ = false;
    return message;
}

void SendQueue::dispatch(FrameKind kind, When when) {
    if (!filling()) return;
    filling_.kind = kind;
    filling_.when = when;
    filling_.serial = ++serial_;
    records_ = 0;
    soon_ = false;
    if (waiting() > 0 || !launch(filling_)) push(std::exchange(filling_, {}));
}

bool SendQueue::proceed() {
    bool any = false;
    for (; waiting() > 0 && launch(waiting_.front()); any = true)
        pop();
    if (waiting() > 0 || !leaves_soon() || (!route_.to.ended() && free() == nullptr)) return any;
    dispatch(FrameKind::Request, When::Now);
    return true;
}

// False: all places in flight are taken. Over an ended connection the message ends at once.
bool SendQueue::launch(OutgoingMessage& message) {
    if (const Status end = route_.to.end.load(std::memory_order_acquire); end != Status::Done) {
        drop(message, end);
        return true;
    }
    MessagePlace* const place = free();
    if (place == nullptr) return false;
    place->segments.swap(message.segments);
    place->completions.swap(message.completions);
    place->confirms = std::exchange(message.confirms, false);
    if (!place->segments.empty()) segmented_.fetch_add(1, std::memory_order_relaxed);
    place->serial.store(message.serial, std::memory_order_seq_cst);
    route_.network.messenger.request(route_.to, message.kind, route_.window, route_.me,
                                     std::exchange(message.message, nullptr), *place, message.when);
    return true;
}

// Ends a message over an ended connection.
void SendQueue::drop(OutgoingMessage& message, Status end) {
    faults_.note(end);
    route_.network.sender.give_back(std::exchange(message.message, nullptr));
    message.segments.clear();
    if (std::exchange(message.confirms, false)) unconfirmed_.fetch_sub(1, std::memory_order_relaxed);
    for (const SharedCompletion& completion : message.completions)
        completion->end(end);
    message.completions.clear();
}

void MessagePlace::answered(Status status, const std::byte* data, std::size_t bytes) {
    if (status != Status::Done) queue->faults_.note(status);
    if (std::exchange(confirms, false)) {
        // A stripe whose holder died has the same status.
        if (status == Status::HolderDied) queue->refused_.store(true, std::memory_order_relaxed);
        queue->unconfirmed_.fetch_sub(1, std::memory_order_release);
    }
    if (!segments.empty()) {
        // A reply without the data has a status that says why.
        if (!store_reply(segments, data, bytes) && status == Status::Done) queue->faults_.note(Status::Malformed);
        segments.clear();
        queue->segmented_.fetch_sub(1, std::memory_order_release);
    }
    for (const SharedCompletion& completion : completions)
        completion->end(status);
    completions.clear();
    // seq_cst, like the waiter's load: the network rings the bell after this. The stream may be destroyed from here on.
    serial.exchange(0, std::memory_order_seq_cst);
}

bool SendQueue::is_half_full() const {
    return std::ranges::count_if(places_, [](const MessagePlace& place) { return place.serial.load() != 0; }) >=
           static_cast<std::ptrdiff_t>(kPlaces / 2);
}

bool SendQueue::uses_memory() const {
    if (awaits_data()) return true;
    // A message gets its place before it leaves the queue, so the places come last.
    return std::ranges::any_of(waiting_, [](const OutgoingMessage& message) { return !message.segments.empty(); }) ||
           awaits_data_in_flight();
}

void SendQueue::forget_results() {
    for (MessagePlace& place : places_) {
        if (place.segments.empty()) continue;
        place.segments.clear();
        segmented_.fetch_sub(1, std::memory_order_relaxed);
    }
    for (OutgoingMessage& message : waiting_)
        message.segments.clear();
    filling_.segments.clear();
}

}  // namespace osc::net
