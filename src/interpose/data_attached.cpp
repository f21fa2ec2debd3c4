#include "interpose/data_attached.h"

#include "interpose/data_fast.h"
#include "stats/counters.h"
#include "transport/shm/regions.h"

namespace osc::attached {
namespace {

// A place in the last region. Displacements are addresses, so that an element has the same stripe on every path.
struct InRegion {
    Peer* peer = nullptr;
    std::uint64_t offset = 0;
    std::byte* place = nullptr;

    bool find(Window& window, int rank, MPI_Aint disp, std::int64_t bytes) {
        if (OSC_FAULT_ANY || static_cast<std::uint32_t>(rank) >= window.size) return false;
        peer = &window.peers[static_cast<std::uint32_t>(rank)];
        // The path is set before the limit.
        if (peer->fast_limit.load(std::memory_order_acquire) == 0 || peer->path != Path::Dynamic) return false;
        offset = static_cast<std::uint64_t>(disp);
        place = peer->regions->last.find(peer->control(), offset, static_cast<std::uint64_t>(bytes));
        if (place == nullptr) return false;
        stats::t_path = stats::DataPath::LoadStore;
        return true;
    }
    std::byte* address() const { return place; }
};

// The place of a transfer; null if this path may not make it.
std::byte* place_of(const Target& target, int count, MPI_Datatype type, std::uint64_t& bytes) {
    if (target.window == nullptr) return nullptr;
    const std::int64_t length = host::plain_size(type) * count;
    bytes = static_cast<std::uint64_t>(length);
    InRegion region;
    return length > 0 && count > 0 && region.find(*target.window, target.rank, target.disp, length) ? region.place
                                                                                                    : nullptr;
}

}  // namespace

bool put(const Target& target, const void* origin, int count, MPI_Datatype type) {
    std::uint64_t bytes = 0;
    std::byte* const place = place_of(target, count, type, bytes);
    if (place == nullptr) return false;
    fast::move_bytes(place, origin, bytes);
    return true;
}

bool get(const Target& target, void* origin, int count, MPI_Datatype type) {
    std::uint64_t bytes = 0;
    const std::byte* const place = place_of(target, count, type, bytes);
    if (place == nullptr) return false;
    fast::move_bytes(origin, place, bytes);
    return true;
}

bool accumulate(const Target& target, const void* origin, int count, MPI_Datatype type, MPI_Op op) {
    return fast::quick_any<false, InRegion>(type, target.window, count, target.rank, target.disp, op, origin, nullptr);
}

bool fetch(const Target& target, const void* origin, void* result, int count, MPI_Datatype type, MPI_Op op) {
    return fast::quick_any<true, InRegion>(type, target.window, count, target.rank, target.disp, op, origin, result);
}

bool compare_and_swap(const Target& target, const void* origin, const void* compare, void* result, MPI_Datatype type) {
    switch (host::plain_basic(type)) {
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

}  // namespace osc::attached
