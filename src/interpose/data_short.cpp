// Between nodes: one record more in the message that is being filled. On a node: the attached region that the last
// operation on the target has used (transport/shm/last_region.h), because the fast paths know no addresses in attached
// memory. A target is of one of these kinds, or of neither.
#include "interpose/data_short.h"

#include "host/datatype.h"
#include "interpose/data_fast.h"
#include "interpose/serve.h"
#include "reach/reach.h"
#include "stats/counters.h"

namespace osc::short_path {
namespace {

using am::Opcode;

constexpr std::uint64_t kMostBytes = 1024;  // larger operations gain nothing

// Windows on one node have no targets to send to.
bool may_send(const Target& target) {
    return target.window != nullptr && target.window->remote_sync != nullptr;
}

// Zero: not to be sent so.
std::uint64_t bytes_of(int count, std::int64_t width) {
    if (count <= 0 || width <= 0) return 0;
    const auto bytes = static_cast<std::uint64_t>(count) * static_cast<std::uint64_t>(width);
    return bytes <= kMostBytes ? bytes : 0;
}

bool send(const Target& target, Opcode opcode, Basic basic, Op op, std::uint64_t bytes, const void* data,
          const void* compare, void* result) {
    const am::Record record{opcode, basic, op, 0, static_cast<std::uint32_t>(bytes), target.disp};
    return target.window->try_small(static_cast<std::uint32_t>(target.rank), {record, data, compare, result});
}

// An accumulate of a type whose elements have no padding, and an operation that it admits.
bool send_update(const Target& target, Opcode opcode, int count, MPI_Datatype type, MPI_Op op, const void* origin,
                 void* result) {
    if (!may_send(target)) return false;
    const Basic basic = abi::plain_basic(type);
    const Op known = op_of(op);
    if (basic == Basic::None || known == Op::None || !op::admits(known, basic)) return false;
    if (known == Op::NoOp && opcode == Opcode::Update) return false;  // an error
    const std::size_t width = op::element_size(basic);
    const std::uint64_t bytes = op::significant_size(basic) == width ? bytes_of(count, static_cast<int>(width)) : 0;
    return bytes != 0 &&
           send(target, opcode, basic, known, bytes, known == Op::NoOp ? nullptr : origin, nullptr, result);
}

bool send_transfer(const Target& target, Opcode opcode, int count, MPI_Datatype type, const void* origin,
                   void* result) {
    if (!may_send(target)) return false;
    const std::uint64_t bytes = bytes_of(count, abi::plain_size(type));
    return bytes != 0 && send(target, opcode, Basic::None, Op::None, bytes, origin, nullptr, result);
}

bool send_swap(const Target& target, const void* origin, const void* compare, void* result, MPI_Datatype type) {
    if (!may_send(target)) return false;
    const Basic basic = abi::plain_basic(type);
    if (basic == Basic::None || !op::admits_compare(basic)) return false;
    const std::size_t width = op::element_size(basic);
    return op::significant_size(basic) == width &&
           send(target, Opcode::CompareAndSwap, basic, Op::None, width, origin, compare, result);
}

// A place in the last region. Displacements are addresses, so that an element has the same stripe on every path.
struct InRegion {
    Peer* peer = nullptr;
    std::uint64_t offset = 0;
    std::byte* place = nullptr;

    bool find(Window& window, int rank, MPI_Aint disp, std::int64_t bytes) {
        if (static_cast<std::uint32_t>(rank) >= window.size) return false;
        peer = &window.peers[static_cast<std::uint32_t>(rank)];
        // The way is set before the limit.
        if (peer->fast_limit.load(std::memory_order_acquire) == 0) return false;
        offset = static_cast<std::uint64_t>(disp);
        place = window.reach(*peer).find_mapped(*peer, offset, static_cast<std::uint64_t>(bytes));
        if (place == nullptr) return false;
        stats::t_path = stats::DataPath::LoadStore;
        return true;
    }
    std::byte* address() const { return place; }
};

// The place of a transfer in the last region; null if that does not contain it.
std::byte* place_in_region(const Target& target, int count, MPI_Datatype type, std::uint64_t& bytes) {
    if (target.window == nullptr) return nullptr;
    const std::int64_t length = abi::plain_size(type) * count;
    bytes = static_cast<std::uint64_t>(length);
    InRegion region;
    return length > 0 && count > 0 && region.find(*target.window, target.rank, target.disp, length) ? region.place
                                                                                                    : nullptr;
}

bool swap_in_region(const Target& target, const void* origin, const void* compare, void* result, MPI_Datatype type) {
    switch (abi::plain_basic(type)) {
        case Basic::I64:
        case Basic::U64:
            return fast::quick_swap<std::uint64_t, InRegion>(target.window, target.rank, target.disp, origin, compare,
                                                             result);
        case Basic::I32:
        case Basic::U32:
            return fast::quick_swap<std::uint32_t, InRegion>(target.window, target.rank, target.disp, origin, compare,
                                                             result);
        default:
            return false;
    }
}

}  // namespace

bool put(const Target& target, const void* origin, int count, MPI_Datatype type) {
    if (send_transfer(target, Opcode::Put, count, type, origin, nullptr)) return true;
    std::uint64_t bytes = 0;
    std::byte* const place = place_in_region(target, count, type, bytes);
    if (place == nullptr) return false;
    fast::move_bytes(place, origin, bytes);
    return true;
}

bool get(const Target& target, void* origin, int count, MPI_Datatype type) {
    if (send_transfer(target, Opcode::Get, count, type, nullptr, origin)) return true;
    std::uint64_t bytes = 0;
    const std::byte* const place = place_in_region(target, count, type, bytes);
    if (place == nullptr) return false;
    fast::move_bytes(origin, place, bytes);
    return true;
}

bool accumulate(const Target& target, const void* origin, int count, MPI_Datatype type, MPI_Op op) {
    return send_update(target, Opcode::Update, count, type, op, origin, nullptr) ||
           fast::quick_any<false, InRegion>(type, target.window, count, target.rank, target.disp, op, origin, nullptr);
}

bool fetch(const Target& target, const void* origin, void* result, int count, MPI_Datatype type, MPI_Op op) {
    return send_update(target, Opcode::UpdateReturn, count, type, op, origin, result) ||
           fast::quick_any<true, InRegion>(type, target.window, count, target.rank, target.disp, op, origin, result);
}

bool compare_and_swap(const Target& target, const void* origin, const void* compare, void* result, MPI_Datatype type) {
    return send_swap(target, origin, compare, result, type) || swap_in_region(target, origin, compare, result, type);
}

}  // namespace osc::short_path
