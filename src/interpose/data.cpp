// The general path of operations: checks the arguments, prepares the target in the epoch, and calls the window.
#include "interpose/data.h"

#include <utility>

#include "epoch/epoch.h"
#include "host/datatype.h"
#include "window/checker.h"
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

bool reads_origin(op::OpKind kind, Op op) {
    return kind != op::OpKind::GetAccumulate || op != Op::NoOp;
}

Fault try_perform(Window& window, op::OpKind kind, const Buffers& buffers, MPI_Op handle,
                  am::PendingOp* asked = nullptr, const int* counter = nullptr) {
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
    if (fault != Fault::None) return fault;
    call.compare = buffers.compare;
    call.disp = buffers.disp;
    const int rank = buffers.target_rank;
    if (rank == MPI_PROC_NULL) return Fault::None;
    if (rank < 0 || static_cast<std::uint32_t>(rank) >= window.size)
        return fail(Fault::Rank, "target rank %d is not in [0, %u)", rank, window.size);
    if (buffers.disp < 0 && window.flavor != MPI_WIN_FLAVOR_DYNAMIC)
        return fail(Fault::Disp, "target displacement %lld is negative", static_cast<long long>(buffers.disp));
    Notification notification{};
    if (counter != nullptr)
        if (fault = window.notifications.find(window, static_cast<std::uint32_t>(rank), *counter, notification);
            fault != Fault::None)
            return fault;
    Peer& target = window.peer(static_cast<std::uint32_t>(rank));
    bool later = false;
    // The program may wait for the request before it makes any other call, and the target for the notification alone,
    // so such an operation cannot stay queued.
    const bool may_wait = asked == nullptr && counter == nullptr && window.can_defer();
    if (fault = epoch::open_target(window, target, may_wait ? &later : nullptr); fault != Fault::None) return fault;
    if (later) return window.defer(target, {call, op::TypeRef(types[0]), op::TypeRef(types[1]), op::TypeRef(types[2])});
    if (counter != nullptr) return window.execute_notified(target, call, asked, notification);
    return window.execute(target, call, asked);
}

}  // namespace

namespace {

int perform(Window& window, const char* function, op::OpKind kind, const Buffers& buffers, MPI_Op op = MPI_OP_NULL) {
    shm::t_call = function;
    return finish(window, function, try_perform(window, kind, buffers, op));
}

// The same for MPI_Fetch_and_op and MPI_Compare_and_swap, which take predefined datatypes only (12.3.4).
int perform_element(Window& window, const char* function, op::OpKind kind, const Buffers& buffers,
                    MPI_Op op = MPI_OP_NULL) {
    if (const op::TypeInfo* const type = host::type_info(buffers.target_type); type != nullptr && !type->element)
        return raise(window, function, fail(Fault::Type, "the datatype must be a predefined one"));
    return perform(window, function, kind, buffers, op);
}

int perform_request(Window& window, const char* function, op::OpKind kind, const Buffers& buffers, MPI_Op op,
                    MPI_Request* request, const int* counter = nullptr) {
    shm::t_call = function;
    am::PendingOp asked;
    int host_error = MPI_SUCCESS;
    const bool notifies = counter != nullptr && buffers.target_rank != MPI_PROC_NULL;
    Fault fault = notifies ? epoch::may_notify(window) : Fault::None;
    if (fault == Fault::None) fault = try_perform(window, kind, buffers, op, &asked, counter);
    if (fault == Fault::None && asked.completion == nullptr) return host::completed_request(request);
    if (fault == Fault::None) fault = request::give(window, std::move(asked), request, host_error);
    return fault != Fault::None ? raise(window, function, fault) : host_error;
}

}  // namespace

int perform_notified(Window& window, const char* function, op::OpKind kind, const Buffers& buffers, MPI_Op op,
                     int index, MPI_Request* request) {
    const auto perform = [&](const Buffers& with) {
        if (request != nullptr) return perform_request(window, function, kind, with, op, request, &index);
        shm::t_call = function;
        Fault fault = with.target_rank != MPI_PROC_NULL ? epoch::may_notify(window) : Fault::None;
        if (fault == Fault::None) fault = try_perform(window, kind, with, op, nullptr, &index);
        return finish(window, function, fault);
    };
    if (window.ledger == nullptr) return perform(buffers);
    return g_checker->notified(function, kind, buffers, op, window.handle, index, request, perform);
}

// What the entry points perform; the large-count forms, which have no fast paths, the same.
#define OSC_BY(how, name, kind, ...) how(*window, "MPI_" #name, op::OpKind::kind, __VA_ARGS__)
#define OSC_ELEMENT_BUFFERS(result, compare) \
    { plain(origin_addr), 1, datatype, result, 1, datatype, compare, target_rank, target_disp, 1, datatype }
#define OSC_GENERAL_Put(name) OSC_BY(perform, name, Put, OSC_TRANSFER_BUFFERS)
#define OSC_GENERAL_Get(name) OSC_BY(perform, name, Get, OSC_TRANSFER_BUFFERS)
#define OSC_GENERAL_Accumulate(name) OSC_BY(perform, name, Accumulate, OSC_TRANSFER_BUFFERS, op)
#define OSC_GENERAL_Get_accumulate(name) OSC_BY(perform, name, GetAccumulate, OSC_FETCH_BUFFERS, op)
#define OSC_GENERAL_Fetch_and_op(name) \
    OSC_BY(perform_element, name, GetAccumulate, OSC_ELEMENT_BUFFERS(result_addr, nullptr), op)
#define OSC_GENERAL_Compare_and_swap(name) \
    OSC_BY(perform_element, name, CompareAndSwap, OSC_ELEMENT_BUFFERS(result_addr, compare_addr))
#define OSC_GENERAL_Rput(name) OSC_BY(perform_request, name, Put, OSC_TRANSFER_BUFFERS, MPI_OP_NULL, request)
#define OSC_GENERAL_Rget(name) OSC_BY(perform_request, name, Get, OSC_TRANSFER_BUFFERS, MPI_OP_NULL, request)
#define OSC_GENERAL_Raccumulate(name) OSC_BY(perform_request, name, Accumulate, OSC_TRANSFER_BUFFERS, op, request)
#define OSC_GENERAL_Rget_accumulate(name) OSC_BY(perform_request, name, GetAccumulate, OSC_FETCH_BUFFERS, op, request)
#define OSC_GENERAL_Put_c OSC_GENERAL_Put
#define OSC_GENERAL_Get_c OSC_GENERAL_Get
#define OSC_GENERAL_Accumulate_c OSC_GENERAL_Accumulate
#define OSC_GENERAL_Get_accumulate_c OSC_GENERAL_Get_accumulate
#define OSC_GENERAL_Rput_c OSC_GENERAL_Rput
#define OSC_GENERAL_Rget_c OSC_GENERAL_Rget
#define OSC_GENERAL_Raccumulate_c OSC_GENERAL_Raccumulate
#define OSC_GENERAL_Rget_accumulate_c OSC_GENERAL_Rget_accumulate

// The namespace of a general form.
#define OSC_SPACE_Put_c , entry
#define OSC_SPACE_Get_c , entry
#define OSC_SPACE_Accumulate_c , entry
#define OSC_SPACE_Get_accumulate_c , entry
#define OSC_SPACE_Rput_c , entry
#define OSC_SPACE_Rget_c , entry
#define OSC_SPACE_Raccumulate_c , entry
#define OSC_SPACE_Rget_accumulate_c , entry

#define OSC_ENTRY(kind, name, parameters, arguments) OSC_DEFINE_##kind(name, parameters, arguments)
#define OSC_DEFINE_Data(name, parameters, arguments)                 \
    int OSC_CHOOSE(OSC_SPACE_##name, slow, )::name parameters {      \
        Window* const window = find_window(win);                     \
        if (window == nullptr) OSC_FORWARD_ON(win, name, arguments); \
        count_served(Entry::name);                                   \
        return OSC_GENERAL_##name(name);                             \
    }
#define OSC_DEFINE_Sync(name, parameters, arguments)
#define OSC_DEFINE_Window(name, parameters, arguments)
#define OSC_DEFINE_Query(name, parameters, arguments)
#define OSC_DEFINE_Comm(name, parameters, arguments)
#include "interpose/entries.def"

}  // namespace osc
