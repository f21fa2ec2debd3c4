// The general path of operations: checks the arguments, prepares the target in the epoch, and calls the window.
// Build: osc -O3
#include "api/data.h"

#include <utility>

#include "core/epoch.h"
#include "host/datatype.h"
#include "window/checker.h"
#include "window/create.h"
#include "window/request.h"

namespace osc {
namespace {

using base::fail;

Fault describe(const char* which, void* base, MPI_Count count, MPI_Datatype type, op::Operand& operand,
               const op::TypeInfo*& info) {
    if (count < 0) return fail(Fault::Count, "%s count %lld is negative", which, static_cast<long long>(count));
    int error = MPI_SUCCESS;
    info = host::type_info(type, &error);
    if (info == nullptr) {
        if (error == MPI_ERR_NO_MEM) return fail(Fault::NoMem, "no memory to describe the %s datatype", which);
        if (error == MPI_ERR_COUNT)
            return fail(Fault::Type, "data of the %s datatype lie outside every address space", which);
        return fail(Fault::Type, "the %s datatype is null, not committed, or not one that libosc can describe", which);
    }
    operand = {base, static_cast<std::size_t>(count), &info->layout};
    return Fault::None;
}

// The same for memory of this process. Null is MPI_BOTTOM too, for datatypes with absolute addresses: those have no
// data where the buffer begins.
Fault describe_buffer(const char* which, void* base, MPI_Count count, MPI_Datatype type, op::Operand& operand,
                      const op::TypeInfo*& info) {
    const Fault fault = describe(which, base, count, type, operand, info);
    if (fault != Fault::None || base != nullptr || count == 0 || info->size == 0 || info->layout.true_lb() != 0)
        return fault;
    return fail(Fault::Buffer, "the %s buffer is null", which);
}

// Refuses a buffer that the processor cannot load and store. The first byte decides: no buffer is of two memories.
Fault refuse_device(const char* which, const op::Operand& operand) {
    if (operand.count == 0 || operand.layout == nullptr || operand.layout->size() == 0) return Fault::None;
    if (!in_device_memory(static_cast<const std::byte*>(operand.base) + operand.layout->true_lb())) return Fault::None;
    return fail(Fault::Buffer,
                "the %s buffer is device memory, which libosc does not access: copy it to or from memory of the host, "
                "or use managed memory",
                which);
}

bool reads_origin(op::OpKind kind, Op op) {
    return kind != op::OpKind::GetAccumulate || op != Op::NoOp;
}

Fault try_perform(Window& window, op::OpKind kind, const Buffers& buffers, MPI_Op handle, net::PendingOp* asked,
                  const int* counter) {
    if (buffers.no_request) return fail(Fault::Arg, "the address for the request is null");
    if (buffers.element)
        if (const op::TypeInfo* const type = host::type_info(buffers.target_type); type != nullptr && !type->element)
            return fail(Fault::Type, "the datatype must be a predefined one");
    op::Call call;
    call.kind = kind;
    if (kind == op::OpKind::Accumulate || kind == op::OpKind::GetAccumulate) {
        call.op = op_of(handle);
        if (call.op == Op::None) return fail(Fault::Op, "only predefined operations are allowed");
        if (call.op == Op::NoOp && kind == op::OpKind::Accumulate)
            return fail(Fault::Op, "MPI_NO_OP is for get_accumulate and fetch_and_op only");
    }
    Fault fault = Fault::None;
    const op::TypeInfo* types[3] = {};
    const int rank = buffers.target_rank;
    // MPI_NO_OP ignores the origin arguments.
    if (reads_origin(kind, call.op))
        fault =
            describe_buffer("origin", buffers.origin, buffers.origin_count, buffers.origin_type, call.origin, types[0]);
    if (fault == Fault::None && (kind == op::OpKind::GetAccumulate || kind == op::OpKind::CompareAndSwap))
        fault =
            describe_buffer("result", buffers.result, buffers.result_count, buffers.result_type, call.result, types[1]);
    if (fault == Fault::None)
        fault = describe("target", nullptr, buffers.target_count, buffers.target_type, call.target, types[2]);
    if (fault == Fault::None && kind == op::OpKind::CompareAndSwap && buffers.compare == nullptr)
        fault = fail(Fault::Buffer, "the compare buffer is null");
    if (rank == MPI_PROC_NULL && fault == Fault::Buffer) return Fault::None;
    if (fault != Fault::None) return fault;
    call.compare = buffers.compare;
    call.disp = buffers.disp;
    if (rank == MPI_PROC_NULL) return Fault::None;
    if (g_has_devices.load(std::memory_order_relaxed)) {
        fault = refuse_device("origin", call.origin);
        if (fault == Fault::None) fault = refuse_device("result", call.result);
        if (fault == Fault::None)
            fault =
                refuse_device("compare", {plain(call.compare), call.compare != nullptr ? 1U : 0U, call.origin.layout});
        if (fault != Fault::None) return fault;
    }
    if (rank < 0 || static_cast<std::uint32_t>(rank) >= window.core.size)
        return fail(Fault::Rank, "target rank %d is not in [0, %u)", rank, window.core.size);
    if (buffers.disp < 0 && window.flavor != MPI_WIN_FLAVOR_DYNAMIC)
        return fail(Fault::Disp, "target displacement %lld is negative", static_cast<long long>(buffers.disp));
    Notification notification{nullptr, net::kNoNotification};
    if (counter != nullptr)
        if (fault = window.notifications.find(window, static_cast<std::uint32_t>(rank), *counter, notification);
            fault != Fault::None)
            return fault;
    Target& target = window.core.target(static_cast<std::uint32_t>(rank));
    bool later = false;
    // The program may wait for the request before it makes any other call, and the target for the notification alone,
    // so such an operation cannot stay queued.
    const bool may_wait = asked == nullptr && counter == nullptr && window.core.can_defer;
    if (fault = epoch::open_target(window.core, target, may_wait ? &later : nullptr); fault != Fault::None)
        return fault;
    if (later)
        return window.core.defer(target, {call, op::TypeRef(types[0]), op::TypeRef(types[1]), op::TypeRef(types[2])});
    if (notification.board == nullptr) return window.core.execute(target, call, {asked, notification.index});
    // An agent may still be executing the operation when execute() returns.
    fault = window.core.execute(target, call, {asked});
    if (fault == Fault::None) fault = window.core.complete_ops(target.rank);
    if (fault == Fault::None) notification.board->add(notification.index);
    return fault;
}

// Checks and performs one operation (MPI 4.1 section 12.3); an MPI error class, raised already. `request`: null, or
// where the operation's request goes. `counter`: null, or the one of the target that a notified operation increments.
int perform(Window& window, const char* function, op::OpKind kind, const Buffers& buffers, MPI_Op op,
            MPI_Request* request, const int* counter = nullptr) {
    shm::t_call = function;
    net::PendingOp asked;
    int host_error = MPI_SUCCESS;
    const bool notifies = counter != nullptr && buffers.target_rank != MPI_PROC_NULL;
    Fault fault = notifies ? epoch::need_passive(window.core, "notified operations") : Fault::None;
    if (fault == Fault::None)
        fault = base::attempt(
            [&] { return try_perform(window, kind, buffers, op, request != nullptr ? &asked : nullptr, counter); });
    if (fault == Fault::None && request != nullptr) {
        if (asked.completion == nullptr) return host::completed_request(request);
        fault = base::attempt([&] { return request::give(window, std::move(asked), request, host_error); });
    }
    return fault != Fault::None ? raise(window, function, fault) : host_error;
}

}  // namespace

int perform_notified(Window& window, const char* function, op::OpKind kind, const Buffers& buffers, MPI_Op op,
                     int index, MPI_Request* request) {
    const auto below = [&](const Buffers& with) { return perform(window, function, kind, with, op, request, &index); };
    if (window.core.ledger == nullptr) return below(buffers);
    return g_checker->notified(function, kind, buffers, op, window.handle, index, request, below);
}

// Large-count forms have no fast path before them.
#define OSC_ENTRY(kind, name, parameters, arguments) OSC_DEFINE_##kind(slow, name, name, parameters, arguments)
#define OSC_LARGE_ENTRY(kind, name, parameters, arguments) \
    OSC_DEFINE_##kind(entry, name##_c, name, parameters, arguments)
#define OSC_DEFINE_Data(space, name, performs, parameters, arguments)   \
    int space::name parameters {                                        \
        OSC_ON_WINDOW(win, name, arguments);                            \
        return perform(*window, "MPI_" #name, OSC_PERFORMS_##performs); \
    }
#define OSC_DEFINE_Sync(...)
#define OSC_DEFINE_Window(...)
#define OSC_DEFINE_Query(...)
#define OSC_DEFINE_Comm(...)
#include "api/entries.def"

}  // namespace osc
