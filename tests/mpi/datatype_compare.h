// A flattened datatype against the host's: its size and bounds, the bytes that MPI_Pack takes and the places to which
// MPI_Unpack brings them.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "host/datatype.h"
#include "op/copy.h"
#include "op/kernels.h"

namespace osct {

/// What the comparisons have seen.
struct Compared {
    long types = 0;  // with data that the host has packed and unpacked
    int wide = 0;    // the host's true bounds are wider than the data
    int cut = 0;     // the host has packed too little
};

inline constexpr std::ptrdiff_t kBeside = 4096;

/// Null, or what differs for `count` elements of a committed type.
inline const char* compare(MPI_Datatype type, const osc::host::TypeInfo& info, int count, Compared& so_far) {
    const char* wrong = nullptr;
    const auto check = [&](bool good, const char* what) {
        if (!good && wrong == nullptr) wrong = what;
    };
    MPI_Count size = 0, lb = 0, extent = 0, true_lb = 0, true_extent = 0;
    MPI_Type_size_x(type, &size);
    MPI_Type_get_extent_x(type, &lb, &extent);
    MPI_Type_get_true_extent_x(type, &true_lb, &true_extent);
    check(static_cast<MPI_Count>(info.size) == size, "size");
    check(info.layout.extent() == extent, "extent");
    // For types without data, or with empty blocks, hosts define true bounds differently.
    if (size == 0) return wrong;
    // MPICH lets parts without data widen the true bounds; ours cover data only, so they lie within.
    const MPI_Count low = info.layout.true_lb();
    const MPI_Count high = low + static_cast<MPI_Count>(info.layout.true_extent());
    if (low != true_lb || high != true_lb + true_extent) ++so_far.wide;
    check(true_lb <= low && high <= true_lb + true_extent, "true bounds");

    osc::op::Bounds bounds;
    check(info.layout.bounds(static_cast<std::size_t>(count), bounds), "bounds");
    if (bounds.hi - bounds.lo > 4'000'000 || size * count > 1'000'000) return wrong;
    // MPICH 4.0.2's MPI_Pack reads bytes beside the data of some types.
    bounds.lo -= kBeside;
    bounds.hi += kBeside;
    std::vector<unsigned char> memory(static_cast<std::size_t>(bounds.hi - bounds.lo));
    for (std::size_t i = 0; i < memory.size(); ++i)
        memory[i] = static_cast<unsigned char>((i * 2654435761u) >> 13);
    const unsigned char* base = memory.data() - bounds.lo;
    std::vector<unsigned char> ours(info.size * static_cast<std::size_t>(count)), theirs(ours.size() + 64);
    osc::op::copy(osc::op::Layout::leaf(osc::Basic::U8), ours.size(), ours.data(), info.layout,
                  static_cast<std::size_t>(count), base);
    int position = 0;
    MPI_Pack(base, count, type, theirs.data(), static_cast<int>(theirs.size()), &position, MPI_COMM_SELF);
    // MPICH 4.0.2 rounds the packed size of some contiguous types down to a multiple of 3: what it packed must agree.
    const auto given = static_cast<std::size_t>(position);
    if (given != ours.size()) ++so_far.cut;
    check(given <= ours.size() && ours.size() - given < 3, "packed size");
    check(std::equal(ours.begin(), ours.begin() + position, theirs.begin()), "packed bytes");
    // Back by the same places: what is packed again is the same, if no byte has two places.
    std::vector<unsigned char> back(memory.size());
    std::vector<unsigned char> again(ours.size());
    unsigned char* const there = back.data() - bounds.lo;
    const osc::op::Layout bytes = osc::op::Layout::leaf(osc::Basic::U8);
    osc::op::copy(info.layout, static_cast<std::size_t>(count), there, bytes, ours.size(), ours.data());
    osc::op::copy(bytes, ours.size(), again.data(), info.layout, static_cast<std::size_t>(count), there);
    check(again == ours, "unpacked bytes");
    if (given == ours.size()) {
        std::vector<unsigned char> host(memory.size());
        position = 0;
        MPI_Unpack(theirs.data(), static_cast<int>(given), &position, host.data() - bounds.lo, count, type,
                   MPI_COMM_SELF);
        check(back == host, "places of unpacked bytes");
    }
    ++so_far.types;
    if (info.basic != osc::Basic::None)
        check(info.layout.elements().size() * osc::op::significant_size(info.basic) ==
                  info.size * osc::op::element_size(info.basic),
              "elements");
    return wrong;
}

}  // namespace osct
