// Where the data of a reply goes in the origin's memory.
#pragma once

#include <cstddef>
#include <span>

#include "op/kernels.h"

namespace osc::net {

/// What one record returns.
struct ReplySegment {
    void* to;
    std::size_t bytes;
    op::Kernel copy;    // null: as bytes; else without the padding of elements
    std::size_t width;  // of an element, for `copy`
};

/// Distributes a reply's data, each segment padded; false if the data is too short.
bool store_reply(std::span<const ReplySegment> segments, const std::byte* data, std::size_t bytes);

}  // namespace osc::net
