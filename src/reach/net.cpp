// Opens the target's stream, and lets an operation's pieces go by it.
#include "reach/net.h"

#include <atomic>
#include <optional>

#include "net/network_stack.h"
#include "net/origin/attached.h"
#include "stats/counters.h"

namespace osc::reach {

namespace {

// The stream of a target of another node, once used.
std::atomic_ref<net::Stream*> stream_of(Target& target) {
    return std::atomic_ref<net::Stream*>(target.stream);
}

}  // namespace

// Null with a fault.
net::Stream* Net::find_stream(Target& target) {
    if (!is_remote(target.way)) return window_.stream(target.rank);
    net::Stream* stream = stream_of(target).load(std::memory_order_acquire);
    if (stream != nullptr) return stream;
    stream = window_.stream(target.rank);
    if (stream != nullptr) stream_of(target).store(stream, std::memory_order_release);
    return stream;
}

Fault Net::open(Target& target, const op::Call& call, Opened& opened) {
    opened.stream = find_stream(target);
    if (opened.stream == nullptr) return Fault::Other;
    opened.lock = std::unique_lock(opened.stream->mutex());
    net::Description there{};
    if (const Fault fault = opened.stream->queries().describe(there); fault != Fault::None) return fault;
    if (!dynamic_) return find_start_in(target.rank, there.size, there.unit, call, opened.start, opened.nothing);
    return find_address(call, opened.start, opened.nothing);
}

Fault Net::admit(Target& target, const op::Call& call, bool& nothing) {
    Opened opened;
    stats::t_path = stats::DataPath::Message;
    const Fault fault = open(target, call, opened);
    nothing = opened.nothing;
    return fault;
}

bool Net::goes_by_provider(const Update& what) const {
    return atomics_ != nullptr && atomics_->mechanism(what.basic, what.op, true) == net::Mechanism::Provider;
}

Outcome Net::perform(Target& target, const op::Call& call, const Update& what, const Extras& extras) {
    Opened opened;
    const bool notifies = extras.notification != net::kNoNotification;
    if (const Fault fault = open(target, call, opened); fault != Fault::None || (opened.nothing && !notifies))
        return {fault};
    stats::t_path = stats::DataPath::Message;
    net::Stream& stream = *opened.stream;
    const bool by_provider = goes_by_provider(what);
    if (atomics_ != nullptr && !by_provider) stream.accumulate_by_message();
    // The result goes to a contiguous copy, so it must arrive before this call unpacks the copy and frees it.
    if (call.kind == op::OpKind::GetAccumulate && !call.result.layout->elements().one_piece(call.result.count))
        stream.operation.answers_now = true;
    stream.operation.notification = extras.notification;
    if (extras.pending != nullptr) *extras.pending = {stream.issue(), &stream, target.rank};
    net::Attached attached(stream);
    const net::Description* const there = stream.queries().exposed();
    std::optional<net::ProviderAtomics> rows;
    if (by_provider && there != nullptr)
        rows.emplace(stream, net::NetworkStack::mine().endpoint(), there->base, there->key);
    Transport& transport = rows       ? static_cast<Transport&>(*rows)
                           : dynamic_ ? static_cast<Transport&>(attached)
                                      : stream;
    const Fault fault = opened.nothing ? stream.finish() : op::execute(call, what, opened.start, transport);
    stream.operation.notification = net::kNoNotification;  // a refused operation has left it
    if (extras.pending != nullptr) stream.issued();
    return {fault, true};
}

bool Net::send(Target& target, const op::Simple& operation, bool threaded) {
    net::Stream* const stream = stream_of(target).load(std::memory_order_acquire);
    if (stream == nullptr || !stream->try_small(operation, threaded)) return false;
    stats::t_path = stats::DataPath::Message;
    return true;
}

Fault Net::count_counters(Target& target, std::uint32_t& count) {
    net::Stream* const stream = find_stream(target);
    if (stream == nullptr) return Fault::Other;
    const std::lock_guard lock(stream->mutex());
    return stream->queries().count_counters(count);
}

}  // namespace osc::reach
