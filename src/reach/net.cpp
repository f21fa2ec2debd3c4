// Opens the target's stream, and lets an operation's pieces go by it.
#include "reach/net.h"

#include <atomic>
#include <optional>
#include <utility>

#include "net/network_stack.h"
#include "net/origin/attached.h"

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

Fault Net::open(Target& target, const op::Call& call, const Update& what, Opened& opened) {
    if (refuses_others_ && atomics_->mechanism(what.basic, what.op, false) == net::Mechanism::Refused)
        return base::fail(
            Fault::Op,
            "%s has no %s on %s, and the window's other accumulates go by its atomics; if only this operation "
            "and MPI_NO_OP meet at an element, create the window with the info key "
            "accumulate_ops=same_op_no_op; else with osc_atomics=messages",
            net::NetworkStack::mine().endpoint().provider(), op::name(what.op), op::name(what.basic));
    opened.stream = find_stream(target);
    if (opened.stream == nullptr) return Fault::Other;
    opened.lock = std::unique_lock(opened.stream->mutex);
    net::Description there{};
    if (const Fault fault = opened.stream->queries.describe(there); fault != Fault::None) return fault;
    if (!dynamic_) return find_start(target.rank, there.size, there.unit, call, opened.start, opened.nothing);
    return find_address(call, opened.start, opened.nothing);
}

Outcome Net::admit(Target& target, const op::Call& call, const Update& what) {
    Opened opened;
    const Fault fault = open(target, call, what, opened);
    return {.fault = fault, .served = !opened.nothing, .path = stats::DataPath::Message};
}

Outcome Net::perform(Target& target, const op::Call& call, const Update& what, const Extras& extras) {
    Opened opened;
    const bool notifies = extras.notification != net::kNoNotification;
    if (const Fault fault = open(target, call, what, opened); fault != Fault::None || (opened.nothing && !notifies))
        return {.fault = fault, .path = stats::DataPath::Message};
    net::Stream& stream = *opened.stream;  // NOLINT(clang-analyzer-core.NullDereference): no fault, so there is one
    const bool by_provider =
        atomics_ != nullptr && atomics_->mechanism(what.basic, what.op, true) == net::Mechanism::Provider;
    if (atomics_ != nullptr && !by_provider) stream.accumulate_by_message();
    // The result goes to a contiguous copy, so it must arrive before this call unpacks the copy and frees it.
    if (call.kind == op::OpKind::GetAccumulate && !call.result.layout->elements().one_piece(call.result.count))
        stream.operation.answers_now = true;
    stream.operation.notification = extras.notification;
    if (extras.pending != nullptr) *extras.pending = {stream.issue(), &stream, target.rank};
    net::Attached attached(stream);
    const net::Description* const there = stream.queries.exposed();
    std::optional<net::ProviderAtomics> rows;
    if (by_provider && there != nullptr)
        rows.emplace(stream, net::NetworkStack::mine().endpoint(), there->base, there->key);
    Transport& transport = rows       ? static_cast<Transport&>(*rows)
                           : dynamic_ ? static_cast<Transport&>(attached)
                                      : stream;
    const Fault fault = opened.nothing ? stream.finish() : op::execute(call, what, opened.start, transport);
    stream.operation.notification = net::kNoNotification;  // a refused operation has left it
    const bool directly = std::exchange(stream.operation.went_directly, false);
    if (extras.pending != nullptr) stream.issued();
    return {.fault = fault, .in_flight = true, .path = directly ? stats::DataPath::Direct : stats::DataPath::Message};
}

Outcome Net::simple(Target& target, const op::Simple& what, bool prepared) {
    constexpr std::uint64_t kMostBytes = 1024;  // longer operations gain nothing from one message
    if (!prepared || what.has_request || what.bytes > kMostBytes) return kNotServed;
    net::Stream* const stream = stream_of(target).load(std::memory_order_acquire);
    if (stream == nullptr || !stream->try_small(what, threaded_)) return kNotServed;
    return {.in_flight = true, .path = stats::DataPath::Message};
}

Fault Net::count_counters(Target& target, std::uint32_t& count) {
    net::Stream* const stream = find_stream(target);
    if (stream == nullptr) return Fault::Other;
    const std::lock_guard lock(stream->mutex);
    return stream->queries.count_counters(count);
}

}  // namespace osc::reach
