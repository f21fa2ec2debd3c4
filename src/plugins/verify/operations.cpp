// The verified operations.
#include "api/data.h"
#include "base/clock.h"
#include "host/datatype.h"
#include "host/signature.h"
#include "op/kernels.h"
#include "plugins/verify/entries.h"
#include "plugins/verify/page_guard.h"

namespace osc {
namespace {

using check::alignment_of;
using check::Bytes;
using check::find_bytes;
using check::Operation;

// The displacement unit of a target; without the exchange at the creation, this process's for one on another node.
std::uint64_t unit_of(Window& window, std::uint32_t rank) {
    if (window.flavor == MPI_WIN_FLAVOR_DYNAMIC) return 1;
    if (window.core.is_local(rank)) return plugin::g_libosc.target(window.core, rank).unit;
    return window.core.ledger->unit_of(rank, static_cast<std::uint64_t>(window.unit));
}

// The addresses of a local buffer. False: too many ranges.
bool find_here(const void* base, MPI_Count count, MPI_Datatype type, std::vector<Bytes>& bytes) {
    const op::TypeInfo* const info = plugin::g_libosc.type_info(type);
    if (info == nullptr || count <= 0) return true;
    return find_bytes(info->layout, static_cast<std::size_t>(count),
                      static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(base)), bytes);
}

void find_local(Operation& operation, const Buffers& buffers) {
    std::vector<Bytes>& origin = operation.kind == op::OpKind::Get ? operation.writes_here : operation.reads_here;
    bool exact = true;
    if (operation.op != Op::NoOp) exact = find_here(buffers.origin, buffers.origin_count, buffers.origin_type, origin);
    if (buffers.result_type != MPI_DATATYPE_NULL)
        exact = find_here(buffers.result, buffers.result_count, buffers.result_type, operation.writes_here) && exact;
    if (!exact) {
        operation.reads_here.clear();
        operation.writes_here.clear();
    }
    operation.exact_here = exact;
}

// Reports a mistake of the operation that this thread is about to perform.
void report_operation(const Window& window, const Operation& operation, check::Rule rule, const std::string& text) {
    window.core.ledger->report(
        rule, {{std::string(operation.call) + t_current_call->operation + ": " + text, operation.site}});
}

// Looks for elements that no variable of their type can be at: of a predefined type, and of any type in accumulates.
// A layout with many blocks is looked at in its first element. The base of a target on another node counts as aligned.
void look_at_alignment(Window& window, const Operation& operation, const op::TypeInfo& type) {
    const bool accumulates = operation.kind != op::OpKind::Put && operation.kind != op::OpKind::Get;
    if (!accumulates && !type.predefined) return;
    const std::int64_t alignment = alignment_of(type.basic);
    const bool known_base = window.core.is_local(operation.target) && window.flavor != MPI_WIN_FLAVOR_DYNAMIC;
    const auto base =
        known_base ? static_cast<std::int64_t>(plugin::g_libosc.target(window.core, operation.target).control().base)
                   : 0;
    for (const Bytes& range : operation.bytes)
        if ((base + range.lo) % alignment != 0) {
            report_operation(window, operation, check::Rule::Alignment,
                             std::string("elements of type ") + op::name(type.basic) +
                                 " need an address that is a multiple of " + std::to_string(alignment) +
                                 (base % alignment != 0 ? ", but displacement 0 of the target is not at one" : ""));
            return;
        }
}

// Arithmetic, order or logic.
bool is_arithmetic(Op op) {
    using enum Op;
    const auto is_one_of = [op](auto... ops) { return ((op == ops) || ...); };
    return !is_one_of(None, Band, Bor, Bxor, Minloc, Maxloc, Replace, NoOp);
}

std::size_t bytes_of(MPI_Datatype type, MPI_Count count) {
    const op::TypeInfo* const info = plugin::g_libosc.type_info(type);
    return info != nullptr && count > 0 ? info->size * static_cast<std::size_t>(count) : 0;
}

// What can be seen before libosc performs the operation.
void look_before(Window& window, const Operation& operation, const op::TypeInfo& type, const Buffers& buffers) {
    look_at_alignment(window, operation, type);
    if (type.basic == Basic::Byte && is_arithmetic(operation.op))
        report_operation(window, operation, check::Rule::Argument,
                         std::string(op::name(operation.op)) +
                             " is not defined for MPI_BYTE (6.9.2); libosc takes it for unsigned char");
    const host::TypedCount target{buffers.target_type, buffers.target_count};
    std::optional<std::string> mismatch;
    if (operation.op != Op::NoOp)
        mismatch = plugin::g_libosc.find_mismatch("origin", {buffers.origin_type, buffers.origin_count}, target);
    if (!mismatch && buffers.result_type != MPI_DATATYPE_NULL)
        mismatch = plugin::g_libosc.find_mismatch("result", {buffers.result_type, buffers.result_count}, target);
    const std::size_t here = bytes_of(buffers.origin_type, buffers.origin_count);
    const std::size_t there = bytes_of(buffers.target_type, buffers.target_count);
    const bool gets = operation.kind == op::OpKind::Get;
    if (!mismatch && operation.op != Op::NoOp && (gets ? here : there) == 0 && here != there)
        mismatch = std::to_string(gets ? there : here) + " bytes of data, none at the " + (gets ? "origin" : "target");
    if (!mismatch) return;
    t_current_call->mismatched = true;
    report_operation(window, operation, check::Rule::Signature, *mismatch);
}

// Runs `below`, and tells the ledger if it has succeeded.
template <class Below>
int operate(const char* call, op::OpKind kind, const Buffers& buffers, MPI_Op op, MPI_Request* request, MPI_Win win,
            const void* returns_to, Below&& below, int notification = -1) {
    const check::IgnoredScope ignored;
    Window* const window = watched(win);
    const int rank = buffers.target_rank;
    if (window == nullptr || rank == MPI_PROC_NULL) return below();
    CallScope scope(check::site_of(returns_to));
    scope->operation = " to rank " + std::to_string(rank);
    const op::TypeInfo* const type = plugin::g_libosc.type_info(buffers.target_type);
    const bool known = type != nullptr && buffers.target_count >= 0 && rank >= 0 &&
                       static_cast<std::uint32_t>(rank) < window->core.size;
    Operation operation;
    if (known) {
        operation.kind = kind;
        operation.op = op_of(op);
        operation.basic = type->basic;
        operation.call = call;
        operation.target = static_cast<std::uint32_t>(rank);
        operation.request = request != nullptr;
        operation.notification = notification;
        operation.began = notification >= 0 ? now_ns() : 0;
        operation.site = check::t_call_site;
        const auto unit = static_cast<std::int64_t>(unit_of(*window, operation.target));
        std::int64_t start = 0;
        if (!__builtin_mul_overflow(buffers.disp, unit, &start))
            operation.exact =
                find_bytes(type->layout, static_cast<std::size_t>(buffers.target_count), start, operation.bytes);
        find_local(operation, buffers);
        scope->operation += ", bytes " + check::text_of(operation.bytes);
    }
    if (request != nullptr && notification < 0)
        report_unless_none(*window, call,
                           plugin::g_libosc.need_passive(window->core, "operations that give a request"));
    if (known) look_before(*window, operation, *type, buffers);
    const bool follows = request != nullptr && may_follow_request();
    // Nothing tells when a request that is not followed completes the use of the buffers.
    if (request != nullptr && !follows) operation.exact_here = false;
    if (known) window->core.ledger->before_operation(operation);
    const int error = below();
    if (error != MPI_SUCCESS || !known) return error;
    window->core.ledger->on_operation(operation);
    if (follows) follow_request(*window, {call + scope->operation, operation.site}, operation, *request);
    return MPI_SUCCESS;
}

// libosc's address of a buffer, which may lie in memory that the program sees through a view.
template <class T>
T* own(T* address) {
    return static_cast<T*>(check::own_address(address));
}

}  // namespace

int verify_notified(const char* call, op::OpKind kind, Buffers buffers, MPI_Op op, MPI_Win win, int counter,
                    MPI_Request* request, base::FunctionRef<int(const Buffers&)> below) {
    buffers.origin = own(buffers.origin);
    buffers.result = own(buffers.result);
    return operate(
        call, kind, buffers, op, request, win, __builtin_return_address(0), [&] { return below(buffers); }, counter);
}

namespace verified {

// The parameters that are addresses of buffers, besides the origin's.
#define OSC_OWN_Get_accumulate , result_addr = own(result_addr)
#define OSC_OWN_Rget_accumulate OSC_OWN_Get_accumulate
#define OSC_OWN_Fetch_and_op OSC_OWN_Get_accumulate
#define OSC_OWN_Compare_and_swap , (result_addr = own(result_addr), compare_addr = own(compare_addr))

#define OSC_ENTRY(kind, name, parameters, arguments) OSC_OPERATE_##kind(name, name, parameters, arguments)
#define OSC_LARGE_ENTRY(kind, name, parameters, arguments) OSC_OPERATE_##kind(name##_c, name, parameters, arguments)
#define OSC_OPERATE_Data(name, performs, parameters, arguments)                                 \
    int name parameters {                                                                       \
        origin_addr = own(origin_addr);                                                         \
        OSC_CHOOSE(OSC_OWN_##performs, (void)0, );                                              \
        return operate("MPI_" #name, OSC_PERFORMS_##performs, win, __builtin_return_address(0), \
                       [&] { return through(plugin::g_libosc.behind->name) arguments; });       \
    }
#define OSC_OPERATE_Sync(...)
#define OSC_OPERATE_Window(...)
#define OSC_OPERATE_Query(...)
#define OSC_OPERATE_Comm(...)
#include "api/entries.def"

}  // namespace verified
}  // namespace osc
