// Filling messages, sending them, and bringing home what they return.
#include "transport/net/stream.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "transport/direct/direct.h"

namespace osc::net {
namespace {

// The most data of a record: a message may begin with the record of a fence (begin).
constexpr std::size_t kMostData = kBody - 2 * sizeof(Record) - kAlign;

// How much of `bytes` at `disp` fits into one record: all, or up to a place where no aligned word is cut.
std::size_t cut(std::int64_t disp, std::size_t bytes, std::size_t most) {
    if (bytes <= most) return bytes;
    return most - static_cast<std::size_t>((static_cast<std::uint64_t>(disp) + most) % 16);
}

}  // namespace

Stream::Stream(Network& network, Connection& to, std::uint64_t window, std::uint32_t me, std::uint32_t target,
               Protocol protocol, std::atomic<std::uint32_t>& unsettled, const std::atomic<std::uint64_t>& fence)
    : network_(network),
      to_(to),
      window_(window),
      me_(me),
      target_(target),
      protocol_(protocol),
      unsettled_(unsettled),
      fence_(fence) {
    for (Flight& flight : flights_)
        flight.stream = this;
    for (Move& move : moves_) {
        move.transfer.connection = &to_;
        move.transfer.owner = this;
        move.transfer.ended = &Stream::moved;
    }
}

Stream::~Stream() {
    {
        const std::lock_guard lock(mutex_);
        settle();
    }
    network_.withdraw(*this);
}

void Stream::mark() {
    if (!marked_) unsettled_.fetch_add(1, std::memory_order_seq_cst);
    marked_ = true;
}

void Stream::failed(Fault fault) {
    const std::lock_guard lock(fault_mutex_);
    if (fault_ != Fault::None || fault == Fault::None) return;
    fault_ = fault;
    text_ = diag::fault_text();
}

void Stream::failed(Status status) {
    if (status != Status::Done) failed(agent::fault_of(status, target_));
}

Fault Stream::take_fault() {
    const std::lock_guard lock(fault_mutex_);
    if (fault_ == Fault::None) return Fault::None;
    return diag::fail(std::exchange(fault_, Fault::None), "%s", text_.c_str());
}

void Stream::Flight::answered(Status status, const std::byte* data, std::size_t bytes) {
    stream->failed(status);
    if (status == Status::HolderDied) stream->lock_refused_.store(true, std::memory_order_relaxed);
    if (std::exchange(locks, false)) stream->unconfirmed_.fetch_sub(1, std::memory_order_release);
    std::size_t at = 0;
    for (const Landing& landing : landings) {
        if (at + landing.bytes > bytes) {  // a reply without the data, whose status should say why
            if (status == Status::Done) stream->failed(Status::Malformed);
            break;
        }
        if (landing.copy != nullptr)
            landing.copy(landing.to, data + at, landing.bytes / landing.width);
        else
            shm::move_bytes(landing.to, data + at, landing.bytes);
        at += padded(landing.bytes);
    }
    if (!landings.empty()) stream->local_.fetch_sub(1, std::memory_order_release);
    landings.clear();
    for (const SharedTicket& ticket : tickets)
        ticket->end(status);
    tickets.clear();
    // In one order with the waiter's own look, for the bell that the network rings after this. The stream may go now.
    serial.exchange(0, std::memory_order_seq_cst);
}

void Stream::Reply::answered(Status reply, const std::byte* data, std::size_t size) {
    status = reply == Status::Done && size < bytes ? Status::Malformed : reply;
    if (status == Status::Done) std::memcpy(to, data, bytes);
    open.exchange(false, std::memory_order_seq_cst);
}

void Stream::moved(Transfer& transfer, int error) {
    auto& move = reinterpret_cast<Move&>(transfer);
    auto& stream = *static_cast<Stream*>(transfer.owner);
    if (error != 0) stream.failed(Status::PeerDied);
    if (move.entry != nullptr) stream.regions_.release(*move.entry);
    if (const SharedTicket ticket = std::move(move.ticket); ticket != nullptr)
        ticket->end(error != 0 ? Status::PeerDied : Status::Done);
    stream.local_.fetch_sub(1, std::memory_order_release);
    if (Message* const lent = std::exchange(move.lent, nullptr); lent != nullptr) stream.network_.give_back(lent);
    move.serial.exchange(0, std::memory_order_seq_cst);
}

// A message, which waits for the target's fence if it is the first behind this process's.
void Stream::begin() {
    filling_.message = network_.claim();
    returning_ = 0;
    records_ = 0;
    const std::uint64_t fence = fence_.load(std::memory_order_relaxed);
    if (fence == awaited_fence_) return;
    awaited_fence_ = fence;
    const Record open{What::FenceOpen, Basic::None, Op::None, 0, 0, static_cast<std::int64_t>(fence)};
    std::memcpy(filling_.message->body(), &open, sizeof open);
    filling_.message->bytes = sizeof open;
    must_confirm();
}

// Nothing goes directly before the message that is being filled is answered.
void Stream::must_confirm() {
    if (!std::exchange(filling_.locks, true)) unconfirmed_.fetch_add(1, std::memory_order_relaxed);
}

// Room for a record in the message that is being filled; returns where its data goes.
std::byte* Stream::add(const Record& record) {
    const std::size_t needed = sizeof(Record) + padded(carried(record));
    const std::size_t back = padded(returned(record));
    const bool alone = protocol_ == Protocol::Messages && queue_.empty();
    // Other threads may fill the next one while this one waits.
    while (filling_.message != nullptr &&
           (filling_.message->bytes + needed > kBody || returning_ + back > kBody - sizeof(ReplyHead) ||
            (alone && records_ > 0 && is_operation(last_.what) && is_operation(record.what)))) {
        if (ticket_ != nullptr)
            put_by();
        else
            push(++full_ % kAnswered == 0 || !filling_.landings.empty() ? FrameKind::Request : FrameKind::Unhurried);
    }
    if (filling_.message == nullptr) begin();
    mark();
    std::byte* at = filling_.message->body() + filling_.message->bytes;
    std::memcpy(at, &record, sizeof record);
    const std::size_t data = carried(record);
    if (data % kAlign != 0) std::memset(at + needed - kAlign, 0, kAlign);
    filling_.message->bytes += needed;
    if (is_operation(record.what)) gathered_bytes_.fetch_add(needed + back, std::memory_order_relaxed);
    returning_ += back;
    ++records_;
    last_ = record;
    return at + sizeof(Record);
}

// A put behind the last one's end becomes a part of it: no record of its own here, and none to execute there.
bool Stream::merge_put(std::int64_t disp, const std::byte* data, std::size_t bytes) {
    const bool follows = filling_.message != nullptr && records_ > 0 && last_.what == What::Put &&
                         last_.bytes % kAlign == 0 && disp == last_.disp + static_cast<std::int64_t>(last_.bytes);
    if (!follows || protocol_ == Protocol::Messages || filling_.message->bytes + padded(bytes) > kBody) return false;
    std::byte* const end = filling_.message->body() + filling_.message->bytes;
    std::byte* const record = end - last_.bytes - sizeof(Record);
    last_.bytes += static_cast<std::uint32_t>(bytes);
    std::memcpy(record, &last_, sizeof last_);
    if (bytes % kAlign != 0) std::memset(end + padded(bytes) - kAlign, 0, kAlign);
    shm::move_bytes(end, data, bytes);
    filling_.message->bytes += padded(bytes);
    gathered_bytes_.fetch_add(padded(bytes), std::memory_order_relaxed);
    return true;
}

// What its reply brings home.
void Stream::landing(const Landing& what) {
    filling_.landings.push_back(what);
    if (ticket_ == nullptr || (!filling_.tickets.empty() && filling_.tickets.back() == ticket_)) return;
    ticket_->begin();
    filling_.tickets.push_back(ticket_);
}

bool Stream::wants_direct(std::size_t bytes) const {
    if (protocol_ == Protocol::Auto) return bytes >= network_.endpoint().direct_from();
    return protocol_ == Protocol::Direct;
}

void Stream::put(std::int64_t disp, const void* from, std::size_t bytes) {
    if (direct(bytes)) return transfer(true, disp, const_cast<void*>(from), bytes);
    const auto* data = static_cast<const std::byte*>(from);
    if (merge_put(disp, data, bytes)) return;
    while (bytes > 0) {
        const std::size_t n = cut(disp, bytes, kMostData);
        shm::move_bytes(add({What::Put, Basic::None, Op::None, 0, static_cast<std::uint32_t>(n), disp}), data, n);
        data += n;
        disp += static_cast<std::int64_t>(n);
        bytes -= n;
    }
}

void Stream::get(std::int64_t disp, void* to, std::size_t bytes) {
    if (direct(bytes)) return transfer(false, disp, to, bytes);
    auto* data = static_cast<std::byte*>(to);
    while (bytes > 0) {
        const std::size_t n = cut(disp, bytes, kBody - sizeof(ReplyHead) - kAlign);
        add({What::Get, Basic::None, Op::None, 0, static_cast<std::uint32_t>(n), disp});
        landing({data, n, nullptr, 1});
        data += n;
        disp += static_cast<std::int64_t>(n);
        bytes -= n;
    }
}

void Stream::update(const Update& how, std::int64_t disp, const void* origin, void* result, std::size_t count) {
    const auto* data = static_cast<const std::byte*>(origin);
    auto* back = static_cast<std::byte*>(result);
    const std::size_t most = (kMostData - sizeof(ReplyHead)) / how.width;
    while (count > 0) {
        const std::size_t elements = std::min(count, most);
        const std::size_t n = elements * how.width;
        std::byte* out = add({result != nullptr ? What::UpdateReturn : What::Update, how.basic, how.op, 0,
                              static_cast<std::uint32_t>(n), disp});
        if (how.op != Op::NoOp) {
            std::memcpy(out, data, n);
            data += n;
        }
        if (back != nullptr) {
            landing({back, n, how.copy, how.width});
            back += n;
        }
        disp += static_cast<std::int64_t>(n);
        count -= elements;
    }
}

void Stream::compare_and_swap(const Update& how, std::int64_t disp, const void* origin, const void* compare,
                              void* result) {
    std::byte* out = add({What::CompareAndSwap, how.basic, Op::None, 0, static_cast<std::uint32_t>(how.width), disp});
    std::memcpy(out, origin, how.width);
    std::memcpy(out + how.width, compare, how.width);
    landing({result, how.width, how.copy, how.width});
}

Fault Stream::finish() {
    if (std::exchange(answers_now_, false)) {
        dispatch();
        await_issued();
        return take_fault();
    }
    if (ticket_ != nullptr || enlisted_) advance();
    if (ticket_ == nullptr && protocol_ == Protocol::Messages && records_ > 0 && is_operation(last_.what)) push();
    return Fault::None;
}

Fault Stream::lock(LockAsk ask) {
    const std::lock_guard lock(mutex_);
    add({What::Lock, Basic::None, Op::None, 0, 0, static_cast<std::int64_t>(ask)});
    under_lock_ = true;
    must_confirm();
    lock_refused_.store(false, std::memory_order_relaxed);  // the epoch before this one is settled
    return Fault::None;
}

// Behind all operations: what goes directly has to be there first.
Fault Stream::unlock() {
    const std::lock_guard lock(mutex_);
    if (local_.load(std::memory_order_acquire) != 0 || !parked_.empty()) {
        dispatch();
        await_issued();
    }
    add({What::Unlock, Basic::None, Op::None, 0, 0, 0});
    under_lock_ = false;
    return Fault::None;
}

Fault Stream::close(What end, bool held) {
    const std::lock_guard lock(mutex_);
    if (local_.load(std::memory_order_acquire) != 0 || !parked_.empty()) {
        dispatch();
        await_issued();
    }
    add({end, Basic::None, Op::None, 0, 0, 0});
    dispatch(filling_.landings.empty() ? FrameKind::Unhurried : FrameKind::Request, held);
    return Fault::None;
}

Fault Stream::notice(std::span<const Record> steps) {
    while (!steps.empty()) {
        const std::span<const Record> part = steps.first(std::min(steps.size(), kBody / sizeof(Record)));
        Message* message = network_.claim();
        std::memcpy(message->body(), part.data(), part.size_bytes());
        message->bytes = part.size_bytes();
        network_.notice(to_, window_, me_, message);
        steps = steps.subspan(part.size());
    }
    return to_.dead.load(std::memory_order_relaxed) ? agent::fault_of(Status::PeerDied, target_) : Fault::None;
}

}  // namespace osc::net
