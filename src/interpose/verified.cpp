// The verified operations.
#include "interpose/verified.h"

#include <algorithm>
#include <utility>

#include "host/datatype.h"
#include "interpose/data.h"

namespace osc {
namespace {

using check::Bytes;
using check::Operation;

constexpr std::size_t kMostRanges = 4096;

// The bytes of `count` elements of a layout from `start`: ascending and disjoint. False: one range, around too many.
bool find_bytes(const op::Layout& layout, std::size_t count, std::int64_t start, std::vector<Bytes>& bytes) {
    op::Bounds bounds;
    if (count == 0 || layout.size() == 0 || !layout.bounds(count, bounds)) return true;
    const op::Shape& shape = layout.data();
    if (shape.one_piece(count)) {
        bytes.push_back({start + bounds.lo, start + bounds.hi});
        return true;
    }
    if (shape.blocks() > kMostRanges / count) {
        bytes.push_back({start + bounds.lo, start + bounds.hi});
        return false;
    }
    std::vector<Bytes> all;
    for (std::size_t element = 0; element < count; ++element)
        for (const op::Run& run : shape.runs())
            for (std::size_t block = 0; block < run.count; ++block) {
                const std::int64_t lo = start + static_cast<std::int64_t>(element) * shape.extent() + run.disp +
                                        static_cast<std::int64_t>(block) * run.stride;
                all.push_back({lo, lo + static_cast<std::int64_t>(run.bytes)});
            }
    std::sort(all.begin(), all.end(), [](const Bytes& a, const Bytes& b) { return a.lo < b.lo; });
    for (const Bytes& range : all) {
        if (!bytes.empty() && range.lo <= bytes.back().hi)
            bytes.back().hi = std::max(bytes.back().hi, range.hi);
        else
            bytes.push_back(range);
    }
    return true;
}

// The displacement unit of a target; false if this process does not know it (a target on another node).
bool unit_of(Window& window, std::uint32_t rank, std::uint64_t& unit) {
    if (window.flavor == MPI_WIN_FLAVOR_DYNAMIC) {
        unit = 1;
        return true;
    }
    unit = window.is_local(rank) ? window.peer(rank).unit : 0;
    return window.is_local(rank);
}

// Runs `below`, and tells the ledger if it has succeeded.
template <class Below>
int operate(const char* call, op::OpKind kind, const Buffers& buffers, MPI_Op op, MPI_Win win, MPI_Request* request,
            const void* returns_to, Below&& below) {
    Window* const window = watched(win);
    const int rank = buffers.target_rank;
    if (window == nullptr || rank == MPI_PROC_NULL) return below();
    CallScope scope(check::site_of(returns_to));
    scope->operation = " to rank " + std::to_string(rank);
    const op::TypeInfo* const type = host::type_info(buffers.target_type);
    const bool known =
        type != nullptr && buffers.target_count >= 0 && rank >= 0 && static_cast<std::uint32_t>(rank) < window->size;
    Operation operation;
    if (known) {
        operation.kind = kind;
        operation.op = op_of(op);
        operation.basic = type->basic;
        operation.call = call;
        operation.target = static_cast<std::uint32_t>(rank);
        operation.request = request != nullptr;
        operation.site = scope->site;
        std::uint64_t unit = 1;
        if (!unit_of(*window, operation.target, unit))
            unit = window->ledger->unit_of(operation.target, static_cast<std::uint64_t>(window->unit));
        std::int64_t start = 0;
        if (!__builtin_mul_overflow(buffers.disp, static_cast<std::int64_t>(unit), &start))
            operation.exact =
                find_bytes(type->layout, static_cast<std::size_t>(buffers.target_count), start, operation.bytes);
        scope->operation += ", bytes " + check::text_of(operation.bytes);
    }
    const int error = below();
    if (error == MPI_SUCCESS && known) window->ledger->on_operation(std::move(operation));
    return error;
}

void* writable(const void* address) {
    return const_cast<void*>(address);  // Buffers has no const variant
}

}  // namespace

namespace verified {

#define OSC_V_TO(C) int target_rank, MPI_Aint target_disp, C target_count, MPI_Datatype target_datatype
#define OSC_V_PUT(C) const void *origin_addr, C origin_count, MPI_Datatype origin_datatype, OSC_V_TO(C)
#define OSC_V_GET(C) void *origin_addr, C origin_count, MPI_Datatype origin_datatype, OSC_V_TO(C)
#define OSC_V_FETCH(C)                                                                                        \
    const void *origin_addr, C origin_count, MPI_Datatype origin_datatype, void *result_addr, C result_count, \
        MPI_Datatype result_datatype, OSC_V_TO(C), MPI_Op op
#define OSC_V_PUT_BUFFERS                                                                                          \
    Buffers {                                                                                                      \
        writable(origin_addr), origin_count, origin_datatype, nullptr, 0, MPI_DATATYPE_NULL, nullptr, target_rank, \
            target_disp, target_count, target_datatype                                                             \
    }
#define OSC_V_FETCH_BUFFERS                                                                                        \
    Buffers {                                                                                                      \
        writable(origin_addr), origin_count, origin_datatype, result_addr, result_count, result_datatype, nullptr, \
            target_rank, target_disp, target_count, target_datatype                                                \
    }
#define OSC_V_A_PUT origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype
#define OSC_V_A_FETCH                                                                                                 \
    origin_addr, origin_count, origin_datatype, result_addr, result_count, result_datatype, target_rank, target_disp, \
        target_count, target_datatype, op

#define OSC_VERIFIED(name, kind, handle, request, parameters, buffers, arguments)                        \
    int name parameters {                                                                                \
        return operate("MPI_" #name, ::osc::op::OpKind::kind, buffers, handle, win, request,             \
                       __builtin_return_address(0), [&] { return through(g_verified.name) arguments; }); \
    }

// Both forms of a function: with int and with MPI_Count.
#define OSC_VERIFIED_FORMS(suffix, C)                                                                         \
    OSC_VERIFIED(Put##suffix, Put, MPI_OP_NULL, nullptr, (OSC_V_PUT(C), MPI_Win win), OSC_V_PUT_BUFFERS,      \
                 (OSC_V_A_PUT, win))                                                                          \
    OSC_VERIFIED(Get##suffix, Get, MPI_OP_NULL, nullptr, (OSC_V_GET(C), MPI_Win win), OSC_V_PUT_BUFFERS,      \
                 (OSC_V_A_PUT, win))                                                                          \
    OSC_VERIFIED(Accumulate##suffix, Accumulate, op, nullptr, (OSC_V_PUT(C), MPI_Op op, MPI_Win win),         \
                 OSC_V_PUT_BUFFERS, (OSC_V_A_PUT, op, win))                                                   \
    OSC_VERIFIED(Get_accumulate##suffix, GetAccumulate, op, nullptr, (OSC_V_FETCH(C), MPI_Win win),           \
                 OSC_V_FETCH_BUFFERS, (OSC_V_A_FETCH, win))                                                   \
    OSC_VERIFIED(Rput##suffix, Put, MPI_OP_NULL, request, (OSC_V_PUT(C), MPI_Win win, MPI_Request * request), \
                 OSC_V_PUT_BUFFERS, (OSC_V_A_PUT, win, request))                                              \
    OSC_VERIFIED(Rget##suffix, Get, MPI_OP_NULL, request, (OSC_V_GET(C), MPI_Win win, MPI_Request * request), \
                 OSC_V_PUT_BUFFERS, (OSC_V_A_PUT, win, request))                                              \
    OSC_VERIFIED(Raccumulate##suffix, Accumulate, op, request,                                                \
                 (OSC_V_PUT(C), MPI_Op op, MPI_Win win, MPI_Request * request), OSC_V_PUT_BUFFERS,            \
                 (OSC_V_A_PUT, op, win, request))                                                             \
    OSC_VERIFIED(Rget_accumulate##suffix, GetAccumulate, op, request,                                         \
                 (OSC_V_FETCH(C), MPI_Win win, MPI_Request * request), OSC_V_FETCH_BUFFERS,                   \
                 (OSC_V_A_FETCH, win, request))
OSC_VERIFIED_FORMS(, int)
OSC_VERIFIED_FORMS(_c, MPI_Count)

OSC_VERIFIED(Fetch_and_op, GetAccumulate, op, nullptr,
             (const void* origin_addr, void* result_addr, MPI_Datatype datatype, int target_rank, MPI_Aint target_disp,
              MPI_Op op, MPI_Win win),
             (Buffers{writable(origin_addr), 1, datatype, result_addr, 1, datatype, nullptr, target_rank, target_disp,
                      1, datatype}),
             (origin_addr, result_addr, datatype, target_rank, target_disp, op, win))
OSC_VERIFIED(Compare_and_swap, CompareAndSwap, MPI_OP_NULL, nullptr,
             (const void* origin_addr, const void* compare_addr, void* result_addr, MPI_Datatype datatype,
              int target_rank, MPI_Aint target_disp, MPI_Win win),
             (Buffers{writable(origin_addr), 1, datatype, result_addr, 1, datatype, compare_addr, target_rank,
                      target_disp, 1, datatype}),
             (origin_addr, compare_addr, result_addr, datatype, target_rank, target_disp, win))

}  // namespace verified
}  // namespace osc
