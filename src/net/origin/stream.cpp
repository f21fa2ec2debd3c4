#include "net/origin/stream.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/assert.h"
#include "base/clock.h"
#include "local/direct.h"

namespace osc::net {
namespace {

constexpr std::int64_t kLookEvery = 100000000;  // ns between two of look()'s tests for a dead target
constexpr std::int64_t kLeftTo = 1000000000;    // ns that the provider has to fail transfers of an ended connection

// The most data that a record carries or returns: a message may begin with the record of a fence (begin).
std::size_t most_data(const NetworkStack& network) {
    return (network.largest_body() - 2 * sizeof(Record) - kAlign) / kAlign * kAlign;
}

// The length from which transfers go directly.
std::size_t direct_from(NetworkStack& network, Protocol protocol) {
    if (protocol == Protocol::Auto) return network.endpoint().direct_from();
    return protocol == Protocol::Direct ? 0 : std::numeric_limits<std::size_t>::max();
}

// The opcodes of operations have the order of their kinds.
constexpr Opcode opcode_of(op::OpKind kind) {
    return static_cast<Opcode>(static_cast<unsigned>(kind) + static_cast<unsigned>(Opcode::Put));
}
static_assert(opcode_of(op::OpKind::Get) == Opcode::Get && opcode_of(op::OpKind::Accumulate) == Opcode::Update &&
              opcode_of(op::OpKind::GetAccumulate) == Opcode::UpdateReturn &&
              opcode_of(op::OpKind::CompareAndSwap) == Opcode::CompareAndSwap);

}  // namespace

Stream::Stream(const StreamRoute& its_route, Protocol protocol, std::atomic<std::uint32_t>& incomplete,
               const std::atomic<std::uint64_t>& fence)
    : RecordTransport(most_data(its_route.network), most_data(its_route.network), 0),
      route(its_route),
      faults(its_route.target),
      protocol_(protocol),
      direct_from_(direct_from(its_route.network, protocol)),
      fence_(fence),
      incomplete_(incomplete),
      messages_(route, faults),
      transfers_(route, faults, regions) {}

Stream::~Stream() {
    {
        const std::lock_guard lock(mutex);
        complete_ops();
    }
    route.network.engine.backlog().withdraw(*this);
}

// Begins a message. The first one after a fence of this process waits for the target's fence.
void Stream::begin() {
    messages_.begin();
    const std::uint64_t fence = fence_.load(std::memory_order_relaxed);
    if (fence == awaited_fence_) return;
    awaited_fence_ = fence;
    messages_.open_fence(fence);
}

// Puts a record into the message that is being filled and has room, or into a new one; returns where its data goes.
[[gnu::always_inline]] inline std::byte* Stream::place(const Record& record, std::size_t carries, std::size_t returns) {
    if (!messages_.filling()) begin();
    mark();
    if (record.opcode > Opcode::Get && is_operation(record.opcode)) accumulates_ = messages_.issued() + 1;
    return messages_.append(record, carries, returns);
}

// Makes room for a record in the message that is being filled; returns where its data goes.
std::byte* Stream::add(const Record& record, std::size_t segments) {
    const bool alone = protocol_ == Protocol::Messages && messages_.waiting() == 0;
    const std::size_t carries = carried(record);
    const std::size_t returns = returned(record);
    // Other threads may fill the next message while this one waits.
    while (messages_.filling() && (!messages_.fits(carries, returns) ||
                                   (alone && messages_.records() > 0 && is_operation(messages_.last().opcode) &&
                                    is_operation(record.opcode)))) {
        if (operation.completion != nullptr)
            queue_message();
        else
            push(++full_ % kAnswered == 0 || messages_.awaits_data() ? FrameKind::Request : FrameKind::DelayedReply);
    }
    if (returns != 0) messages_.expect_more(segments);
    return place(record, carries, returns);
}

// False if the operation goes by message.
bool Stream::transfer_directly(bool write, std::int64_t disp, void* memory, std::size_t bytes) {
    const Description* const there = queries.exposed();
    if (there == nullptr || !wants_direct(bytes)) return false;
    transfer(write, there->base + static_cast<std::uint64_t>(disp), there->key, memory, bytes, nullptr);
    return true;
}

// The lock and the target's fence, which were requested before, must be confirmed first.
void Stream::begin_direct(bool may_wait) {
    if (fence_.load(std::memory_order_relaxed) != awaited_fence_ && !messages_.filling()) begin();
    if (may_wait)
        push();
    else
        queue_message();
    mark();
}

// A thread that issues faster than the target answers waits here.
void Stream::await_room() {
    if (operation.completion == nullptr && transfers_.waiting() > RdmaQueue::kPlaces) await_started();
}

// While this thread waits, other threads may issue further accumulates, hence the loops.
void Stream::accumulate_by_message() {
    while (!transfers_.ended(rows_) && !abandoned_)
        await_issued();
}

void Stream::update_row(std::unique_ptr<RowUpdate> update, std::uint64_t address, std::uint64_t key) {
    while (!messages_.ended(accumulates_) || (messages_.filling() && accumulates_ > messages_.issued())) {
        send();
        await_issued();
    }
    operation.went_directly = true;
    const SharedCompletion& completion = operation.completion;
    begin_direct(completion == nullptr);
    direct_bytes_ += update->row.bytes;
    if (completion != nullptr) completion->begin();
    RdmaRequest request{false, address, key, nullptr, update->row.bytes, nullptr, nullptr, completion};
    request.update = std::move(update);
    start(std::move(request));
    rows_ = transfers_.issued();
    advance();
    await_room();
}

void Stream::transfer(bool write, std::uint64_t address, std::uint64_t key, void* memory, std::size_t bytes,
                      RegionCache::Kept* entry) {
    operation.went_directly = true;
    const SharedCompletion& completion = operation.completion;
    begin_direct(completion == nullptr || entry != nullptr);
    direct_bytes_ += bytes;
    if (completion != nullptr) completion->begin();
    start({write, address, key, static_cast<std::byte*>(memory), bytes, entry, nullptr, completion});
    advance();
    // The caller is about to release the entry. A few other transfers may wait, for the lock or for room, after this
    // call.
    if (entry != nullptr)
        await_started();
    else
        await_room();
}

bool Stream::try_small(const op::Simple& simple, bool threaded) {
    const auto& [kind, bytes, disp, origin, result, how, has_request] = simple;
    OSC_ASSERT(!has_request);
    Record record{opcode_of(kind), Basic::None, Op::None, 0, static_cast<std::uint32_t>(bytes), disp};
    if (how != nullptr) {
        record.basic = how->basic;
        record.op = how->op;
    }
    std::unique_lock lock(mutex, std::defer_lock);
    if (threaded || is_enlisted()) lock.lock();
    const Description* const there = queries.described();
    if (there == nullptr || there->dynamic != 0 || protocol_ == Protocol::Messages || bytes > most_) return false;
    if (simple.is_transfer() && wants_direct(bytes)) return false;
    if (__builtin_mul_overflow(record.disp, static_cast<std::int64_t>(there->unit), &record.disp)) return false;
    const auto offset = static_cast<std::uint64_t>(record.disp);
    if (offset > there->size || bytes > there->size - offset) return false;
    if (kind == op::OpKind::Put && messages_.extend_put(record.disp, static_cast<const std::byte*>(origin), bytes))
        return true;
    const bool compares = kind == op::OpKind::CompareAndSwap;
    const std::uint64_t carries = (origin != nullptr ? bytes : 0) + (compares ? bytes : 0);
    const std::uint64_t returns = result != nullptr ? bytes : 0;
    OSC_ASSERT(carries == carried(record) && returns == returned(record));
    if (messages_.filling() && !messages_.fits(carries, returns)) return false;
    if (result != nullptr) messages_.expect_more();
    std::byte* const to = place(record, carries, returns);
    if (origin != nullptr) shm::move_bytes(to, origin, bytes);
    if (compares) shm::move_bytes(to + bytes, how->compare, bytes);
    if (result != nullptr) messages_.expect({result, bytes, nullptr, 1}, nullptr);
    return true;
}

void Stream::move(bool write, std::int64_t disp, void* memory, std::size_t bytes) {
    if (transfer_directly(write, disp, memory, bytes)) return;
    const bool merges = write && protocol_ != Protocol::Messages;
    if (merges && messages_.extend_put(disp, static_cast<const std::byte*>(memory), bytes)) return;
    RecordTransport::move(write, disp, memory, bytes);
}

void Stream::returns(const ReplySegment& segment) {
    messages_.expect(segment, operation.completion);
}

// Sends the operation's notification behind its data, in the same message if there is room; behind direct transfers
// that are in flight, later. The target may wait for nothing but this notification, so the message goes at once. Its
// reply may wait for the target's next message while there are places for more.
void Stream::notify() {
    const std::uint32_t counter = std::exchange(operation.notification, kNoNotification);
    if (counter == kNoNotification) return;
    if (notify_later(counter)) return;
    add({Opcode::Notify, Basic::None, Op::None, 0, 0, counter});
    const bool awaited = messages_.awaits_data() || messages_.awaits_completion() || messages_.is_half_full();
    queue_message(awaited ? FrameKind::Request : FrameKind::DelayedReply);
}

Fault Stream::finish() {
    notify();
    const bool completes = operation.completion != nullptr;
    if (std::exchange(operation.answers_now, false)) {
        send();
        await_issued();
        return faults.take();
    }
    if (completes || is_enlisted()) advance();
    if (!completes && protocol_ == Protocol::Messages && messages_.records() > 0 &&
        is_operation(messages_.last().opcode))
        push();
    return Fault::None;
}

void Stream::lock(LockAsk ask) {
    add({Opcode::Lock, Basic::None, Op::None, 0, 0, static_cast<std::int64_t>(ask)});
    under_lock_ = true;
    messages_.must_confirm();
    messages_.accept_lock();  // the epoch before this one is settled
}

// Direct transfers, and operations in flight that return data, must have ended before. Those in the message that the
// record joins end with its reply.
void Stream::end_epoch(Opcode end) {
    if (messages_.awaits_data_in_flight() || transfers_.uses_memory() || notifies_later()) {
        send();
        await_issued();
    }
    base::insist([&] { add({end, Basic::None, Op::None, 0, 0, 0}); });
    under_lock_ = under_lock_ && end != Opcode::Unlock;
}

void Stream::close(Opcode end, SendQueue::When when, bool awaited) {
    end_epoch(end);
    const bool at_once = awaited || messages_.awaits_data();
    send(at_once ? FrameKind::Request : FrameKind::DelayedReply, when);
}

// A put or get that is awaited next, with nothing else issued, goes directly: the provider acknowledges it sooner than
// two processes exchange a request and its reply. False if it does not.
bool Stream::send_alone() {
    if (!messages_.has_only_record() || protocol_ != Protocol::Auto || transfers_.waiting() > 0 || !all_ended() ||
        !is_confirmed())
        return false;
    const Description* const there = queries.exposed();
    const Record record = messages_.last();
    if (there == nullptr || record.bytes > route.network.endpoint().largest_transfer()) return false;
    std::byte* memory = nullptr;
    Message* const alone = messages_.take_only_record(memory);
    direct_bytes_ += record.bytes;
    start({record.opcode == Opcode::Put, there->base + static_cast<std::uint64_t>(record.disp), there->key, memory,
           record.bytes, nullptr, alone, nullptr});
    return true;
}

void Stream::send_off() {
    if (!send_alone()) messages_.dispatch(FrameKind::Request, SendQueue::When::Now);
    advance();
}

Fault Stream::complete_ops() {
    send_off();
    await_issued();
    return settle();
}

Fault Stream::complete_local() {
    if (messages_.uses_memory() || transfers_.uses_memory()) return complete_ops();
    // While all places in flight are taken, the message stays open for further operations.
    if (messages_.filling()) {
        messages_.send_soon();
        advance();
    }
    return faults.take();
}

sync::Traffic Stream::take_traffic() {
    const std::lock_guard lock(mutex);
    return {messages_.take_traffic(), std::exchange(direct_bytes_, 0)};
}

void Stream::forget_results() {
    const std::lock_guard lock(mutex);
    messages_.forget_results();
}

// True if the connection ended so long ago that the provider will not complete its transfers.
bool Stream::gone(std::int64_t& since) {
    if (route.network.messenger.alive(route.to)) {
        since = 0;
        return false;
    }
    const std::int64_t now = now_ns();
    if (since == 0) since = now;
    return now - since > kLeftTo;
}

// The messenger fails a dead peer's requests at once, and the provider fails its transfers. Transfers that have not
// ended after kLeftTo belong to the provider for ever, with the memory that it may still access.
void Stream::wait_until(base::FunctionRef<bool()> done) {
    const auto over = [&] { return abandoned_.load(std::memory_order_acquire) || done(); };
    if (over()) return;
    const shm::WaitScope waits = route.scope();
    bool ended = false;
    {
        const Released released(*this);
        std::int64_t since = 0;
        ended = route.network.engine.wait(over, [&] { return gone(since); });
    }
    if (ended) return;
    abandoned_.store(true, std::memory_order_release);
    faults.note(route.to.end.load(std::memory_order_acquire));
    advance();
}

bool Stream::look(Completion& completion) {
    if (completion.ended()) return true;
    route.network.engine.poll();
    if (completion.ended()) return true;
    const std::unique_lock lock(mutex, std::try_to_lock);
    if (const std::int64_t now = now_ns(); lock.owns_lock() && now - looked_ > kLookEvery) {
        looked_ = now;
        if (gone(gone_since_)) completion.give_up(route.to.end.load(std::memory_order_acquire));
    }
    return completion.ended();
}

void Stream::await(Completion& completion) {
    const shm::WaitScope waits = route.scope();
    std::int64_t since = 0;
    if (!route.network.engine.wait([&] { return completion.ended(); }, [&] { return gone(since); }))
        completion.give_up(route.to.end.load(std::memory_order_acquire));
}

void Stream::send(FrameKind kind, SendQueue::When when) {
    messages_.dispatch(kind, when);
    advance();
}

void Stream::push(FrameKind kind) {
    send(kind);
    const std::uint64_t issued = messages_.issued();
    wait_until([this, issued] { return messages_.started(issued); });
}

void Stream::queue_message(FrameKind kind) {
    if (!messages_.filling()) return;
    if (messages_.waiting() >= kMostQueuedBytes / route.network.endpoint().largest_message())
        push(kind);
    else
        send(kind);
}

void Stream::await_started() {
    const std::uint64_t issued = transfers_.issued();
    wait_until([this, issued] { return transfers_.started(issued); });
}

void Stream::await_notifications() {
    const std::uint64_t deferred = deferred_;
    wait_until([this, deferred] { return notified_.load(std::memory_order_seq_cst) >= deferred; });
}

void Stream::await_issued() {
    if (notifies_later()) await_notifications();
    const std::uint64_t sent = messages_.issued();
    const std::uint64_t begun = transfers_.issued();
    wait_until([this, sent, begun] { return messages_.ended(sent) && transfers_.ended(begun); });
}

void Stream::confirm() {
    if (is_confirmed()) return;
    push();
    wait_until([this] { return is_confirmed(); });
}

// True if it started or launched anything.
bool Stream::proceed() {
    const bool sent = messages_.proceed();
    const bool started = transfers_.proceed(is_confirmed(), refused());
    return proceed_notifications() || started || sent;
}

bool Stream::notify_later(std::uint32_t counter) {
    if (!notifies_later() && transfers_.ended(transfers_.issued())) return false;
    notifications_.push_back({counter, transfers_.issued()});
    ++deferred_;
    advance();
    if (notifications_.size() > kMostQueued) await_notifications();
    return true;
}

// The target may wait for nothing but a notification, so its message goes at once.
bool Stream::proceed_notifications() {
    bool any = false;
    while (notifies_later() && transfers_.ended(notifications_.front().transfers)) {
        const Record record{Opcode::Notify, Basic::None, Op::None, 0, 0, notifications_.front().counter};
        if (messages_.filling() && !messages_.fits(0, 0)) messages_.dispatch(FrameKind::Request, SendQueue::When::Now);
        if (!messages_.filling()) messages_.begin();
        messages_.append(record, 0, 0);
        messages_.dispatch(FrameKind::Request, SendQueue::When::Now);
        notifications_.pop_front();
        notified_.fetch_add(1, std::memory_order_seq_cst);
        any = true;
    }
    return any;
}

void Stream::advance() {
    if (!is_deferred()) return;
    bool any = proceed();
    if (!enlisted_.load(std::memory_order_relaxed) && is_deferred()) {
        enlisted_.store(true, std::memory_order_relaxed);
        route.network.engine.backlog().enlist(*this);
        any = proceed() || any;  // an event may have come before the backlog had this stream
    }
    if (any) route.network.engine.ring();
}

progress::DeferredWork::Left Stream::resume() {
    const std::unique_lock lock(mutex, std::try_to_lock);
    if (!lock.owns_lock()) return Left::Busy;
    if (proceed()) route.network.engine.ring();
    if (is_deferred()) return transfers_.no_room() ? Left::Busy : Left::Work;
    enlisted_.store(false, std::memory_order_release);  // the last use of the stream by this thread
    return Left::Nothing;
}

void Stream::mark() {
    if (!std::exchange(marked_, true)) incomplete_.fetch_add(1, std::memory_order_seq_cst);
}

// Other threads complete the operations that they issued meanwhile.
Fault Stream::settle() {
    const bool nothing = !messages_.filling() && all_ended();
    if ((nothing || abandoned_) && std::exchange(marked_, false)) incomplete_.fetch_sub(1, std::memory_order_seq_cst);
    return faults.take();
}

bool Stream::abandon() {
    if (!abandoned_) return false;
    route.network.engine.backlog().withdraw(*this);
    return true;
}

}  // namespace osc::net
