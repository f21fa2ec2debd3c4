#include "net/origin/stream.h"

#include <algorithm>
#include <utility>

#include "local/direct.h"
#include "stats/counters.h"

namespace osc::net {
namespace {

// The most data that a record carries or returns: a message may begin with the record of a fence (begin).
std::size_t most_data(const NetworkStack& network) {
    return (network.largest_body() - 2 * sizeof(Record) - kAlign) / kAlign * kAlign;
}

constexpr bool is_accumulate(Opcode opcode) {
    return opcode == Opcode::Update || opcode == Opcode::UpdateReturn || opcode == Opcode::CompareAndSwap;
}

// The opcodes of operations have the order of their kinds.
constexpr Opcode opcode_of(op::OpKind kind) {
    return static_cast<Opcode>(static_cast<unsigned>(kind) + static_cast<unsigned>(Opcode::Put));
}
static_assert(opcode_of(op::OpKind::Get) == Opcode::Get && opcode_of(op::OpKind::Accumulate) == Opcode::Update &&
              opcode_of(op::OpKind::GetAccumulate) == Opcode::UpdateReturn &&
              opcode_of(op::OpKind::CompareAndSwap) == Opcode::CompareAndSwap);

}  // namespace

Stream::Stream(NetworkStack& network, Connection& to, std::uint64_t window, std::uint32_t me, std::uint32_t target,
               Protocol protocol, std::atomic<std::uint32_t>& incomplete, const std::atomic<std::uint64_t>& fence)
    : RecordTransport(most_data(network), most_data(network), 0),
      network_(network),
      target_(target),
      protocol_(protocol),
      fence_(fence),
      flow_(network, to, window, me, target, incomplete),
      queries_(network, to, flow_, window, me, target) {}

Stream::~Stream() {
    const std::lock_guard lock(mutex());
    complete_ops();
}

// Begins a message. The first one after a fence of this process waits for the target's fence.
void Stream::begin() {
    flow_.messages.begin();
    const std::uint64_t fence = fence_.load(std::memory_order_relaxed);
    if (fence == awaited_fence_) return;
    awaited_fence_ = fence;
    flow_.messages.open_fence(fence);
}

// Makes room for a record in the message that is being filled; returns where its data goes.
std::byte* Stream::add(const Record& record) {
    SendQueue& messages = flow_.messages;
    const bool alone = protocol_ == Protocol::Messages && messages.queued() == 0;
    // Other threads may fill the next message while this one waits.
    while (messages.filling() &&
           (!messages.fits(record) ||
            (alone && messages.records() > 0 && is_operation(messages.last().opcode) && is_operation(record.opcode)))) {
        if (flow_.operation.completion != nullptr)
            flow_.queue_message();
        else
            flow_.push(++full_ % kAnswered == 0 || messages.awaits_data() ? FrameKind::Request
                                                                          : FrameKind::DelayedReply);
    }
    if (!messages.filling()) begin();
    flow_.mark();
    if (is_accumulate(record.opcode)) accumulates_ = messages.issued() + 1;
    return messages.append(record);
}

bool Stream::wants_direct(std::size_t bytes) const {
    if (protocol_ == Protocol::Auto) return bytes >= network_.endpoint().direct_from();
    return protocol_ == Protocol::Direct;
}

// False if the operation goes by message.
bool Stream::transfer_directly(bool write, std::int64_t disp, void* memory, std::size_t bytes) {
    const Description* const there = queries_.exposed();
    if (there == nullptr || !wants_direct(bytes)) return false;
    transfer(write, there->base + static_cast<std::uint64_t>(disp), there->key, memory, bytes, nullptr);
    return true;
}

// The lock and the target's fence, which were requested before, must be confirmed first.
void Stream::begin_direct(bool may_wait) {
    if (fence_.load(std::memory_order_relaxed) != awaited_fence_ && !flow_.messages.filling()) begin();
    if (may_wait)
        flow_.push();
    else
        flow_.queue_message();
    flow_.mark();
}

// A thread that issues faster than the target answers waits here.
void Stream::await_room() {
    if (flow_.operation.completion == nullptr && flow_.transfers.deferred() > RdmaQueue::kTransfers)
        flow_.await_started();
}

// While this thread waits, other threads may issue further accumulates, hence the loops.
void Stream::accumulate_by_message() {
    while (!flow_.transfers.ended(rows_))
        flow_.await_issued();
}

void Stream::update_row(std::unique_ptr<RowUpdate> update, std::uint64_t address, std::uint64_t key) {
    while (!flow_.messages.ended(accumulates_) ||
           (flow_.messages.filling() && accumulates_ > flow_.messages.issued())) {
        flow_.dispatch();
        flow_.await_issued();
    }
    stats::t_path = stats::DataPath::Direct;
    const SharedCompletion& completion = flow_.operation.completion;
    begin_direct(completion == nullptr);
    direct_bytes_ += update->row.bytes;
    if (completion != nullptr) completion->begin();
    RdmaRequest request{false, address, key, nullptr, update->row.bytes, nullptr, nullptr, completion};
    request.update = std::move(update);
    flow_.start(std::move(request));
    rows_ = flow_.transfers.issued();
    flow_.advance();
    await_room();
}

void Stream::transfer(bool write, std::uint64_t address, std::uint64_t key, void* memory, std::size_t bytes,
                      RegionCache::Entry* entry) {
    stats::t_path = stats::DataPath::Direct;
    const SharedCompletion& completion = flow_.operation.completion;
    begin_direct(completion == nullptr || entry != nullptr);
    direct_bytes_ += bytes;
    for (std::size_t done = 0; done < bytes;) {
        const std::size_t part = std::min(bytes - done, network_.endpoint().largest_transfer());
        if (completion != nullptr) completion->begin();
        flow_.start(
            {write, address + done, key, static_cast<std::byte*>(memory) + done, part, entry, nullptr, completion});
        done += part;
    }
    flow_.advance();
    // The caller is about to release the entry. A few other transfers may wait, for the lock or for room, after this
    // call.
    if (entry != nullptr)
        flow_.await_started();
    else
        await_room();
}

bool Stream::try_small(const op::Simple& operation, bool threaded) {
    const auto& [kind, bytes, disp, origin, result, how] = operation;
    Record record{opcode_of(kind), Basic::None, Op::None, 0, static_cast<std::uint32_t>(bytes), disp};
    if (how != nullptr) {
        record.basic = how->basic;
        record.op = how->op;
    }
    std::unique_lock lock(mutex(), std::defer_lock);
    if (threaded || flow_.is_enlisted()) lock.lock();
    SendQueue& messages = flow_.messages;
    const Description* const there = queries_.described();
    if (there == nullptr || there->dynamic != 0 || protocol_ == Protocol::Messages || !messages.filling()) return false;
    if (operation.is_transfer() && wants_direct(bytes)) return false;
    if (__builtin_mul_overflow(record.disp, static_cast<std::int64_t>(there->unit), &record.disp)) return false;
    const auto offset = static_cast<std::uint64_t>(record.disp);
    if (offset > there->size || bytes > there->size - offset) return false;
    if (record.opcode == Opcode::Put && messages.extend_put(record.disp, static_cast<const std::byte*>(origin), bytes))
        return true;
    if (!messages.fits(record)) return false;
    flow_.mark();
    if (is_accumulate(record.opcode)) accumulates_ = messages.issued() + 1;
    std::byte* const to = messages.append(record);
    if (origin != nullptr) shm::move_bytes(to, origin, bytes);
    if (how != nullptr && how->compare != nullptr) shm::move_bytes(to + bytes, how->compare, bytes);
    if (result != nullptr) messages.expect({result, bytes, nullptr, 1}, nullptr);
    return true;
}

void Stream::put(std::int64_t disp, const void* from, std::size_t bytes) {
    if (transfer_directly(true, disp, const_cast<void*>(from), bytes)) return;
    const bool merges = protocol_ != Protocol::Messages;
    if (merges && flow_.messages.extend_put(disp, static_cast<const std::byte*>(from), bytes)) return;
    RecordTransport::put(disp, from, bytes);
}

void Stream::get(std::int64_t disp, void* to, std::size_t bytes) {
    if (!transfer_directly(false, disp, to, bytes)) RecordTransport::get(disp, to, bytes);
}

void Stream::returns(const ReplySegment& segment) {
    flow_.messages.expect(segment, flow_.operation.completion);
}

// Sends the operation's notification behind its data, in the same message if there is room; behind direct transfers
// that are in flight, later. The target may wait for nothing but this notification, so the message goes at once. Its
// reply may wait for the target's next message while there are places for more.
void Stream::notify() {
    const std::uint32_t counter = std::exchange(flow_.operation.notification, kNoNotification);
    if (counter == kNoNotification) return;
    if (flow_.notify_later(counter)) return;
    add({Opcode::Notify, Basic::None, Op::None, 0, 0, counter});
    const SendQueue& messages = flow_.messages;
    const bool awaited = messages.awaits_data() || messages.awaits_completion() || messages.is_half_full();
    flow_.queue_message(awaited ? FrameKind::Request : FrameKind::DelayedReply);
}

Fault Stream::finish() {
    notify();
    const bool completes = flow_.operation.completion != nullptr;
    if (std::exchange(flow_.operation.answers_now, false)) {
        flow_.dispatch();
        flow_.await_issued();
        return flow_.faults.take();
    }
    if (completes || flow_.is_enlisted()) flow_.advance();
    const SendQueue& messages = flow_.messages;
    if (!completes && protocol_ == Protocol::Messages && messages.records() > 0 && is_operation(messages.last().opcode))
        flow_.push();
    return Fault::None;
}

Fault Stream::lock(LockAsk ask) {
    const std::lock_guard lock(mutex());
    add({Opcode::Lock, Basic::None, Op::None, 0, 0, static_cast<std::int64_t>(ask)});
    flow_.under_lock = true;
    flow_.messages.must_confirm();
    flow_.messages.accept_lock();  // the epoch before this one is settled
    return Fault::None;
}

// Before a record that ends an epoch: direct transfers, and operations in flight that return data, must have ended.
// Those in the message that the record joins end with its reply.
void Stream::end_direct() {
    if (!flow_.messages.awaits_data_in_flight() && !flow_.transfers.uses_memory() && !flow_.notifies_later()) return;
    flow_.dispatch();
    flow_.await_issued();
}

Fault Stream::unlock() {
    const std::lock_guard lock(mutex());
    end_direct();
    add({Opcode::Unlock, Basic::None, Op::None, 0, 0, 0});
    flow_.under_lock = false;
    return Fault::None;
}

Fault Stream::close(Opcode end, SendQueue::When when, bool awaited) {
    const std::lock_guard lock(mutex());
    end_direct();
    add({end, Basic::None, Op::None, 0, 0, 0});
    const bool at_once = awaited || flow_.messages.awaits_data();
    flow_.dispatch(at_once ? FrameKind::Request : FrameKind::DelayedReply, when);
    return Fault::None;
}

// A put or get that is awaited next, with nothing else issued, goes directly: the provider acknowledges it sooner than
// two processes exchange a request and its reply. False if it does not.
bool Stream::send_alone() {
    SendQueue& messages = flow_.messages;
    const Description* const there = queries_.exposed();
    if (protocol_ != Protocol::Auto || there == nullptr || !messages.has_only_record() ||
        flow_.transfers.deferred() > 0 || !flow_.all_ended() || !flow_.is_confirmed())
        return false;
    const Record record = messages.last();
    const bool put = record.opcode == Opcode::Put;
    if (record.bytes > network_.endpoint().largest_transfer()) return false;
    std::byte* memory = nullptr;
    Message* const alone = messages.take_only_record(memory);
    flow_.start({put, there->base + static_cast<std::uint64_t>(record.disp), there->key, memory, record.bytes, nullptr,
                 alone, nullptr});
    flow_.advance();
    return true;
}

void Stream::send_off() {
    if (send_alone()) return;
    flow_.dispatch();
    flow_.advance();
}

Fault Stream::complete_ops() {
    send_off();
    flow_.await_issued();
    return flow_.settle();
}

Fault Stream::complete_local() {
    if (flow_.messages.uses_memory() || flow_.transfers.uses_memory()) return complete_ops();
    // While all places in flight are taken, the message stays open for further operations.
    if (flow_.messages.filling()) {
        flow_.messages.send_soon();
        flow_.advance();
    }
    return flow_.faults.take();
}

sync::Traffic Stream::take_traffic() {
    const std::lock_guard lock(mutex());
    return {flow_.messages.take_traffic(), std::exchange(direct_bytes_, 0)};
}

void Stream::forget_results() {
    const std::lock_guard lock(mutex());
    flow_.messages.forget_results();
}

}  // namespace osc::net
