// Copies data from one layout to another. Owns nothing. Safe from any thread as long as the memory is not in use
// elsewhere.
#pragma once

#include <cstddef>

#include "op/cursor.h"

namespace osc::op {

/// Copies `src_count` elements to `dst_count` elements of as many bytes, as put and get do (MPI 4.1 section 12.3).
void copy(const Layout& dst_layout, std::size_t dst_count, void* dst, const Layout& src_layout, std::size_t src_count,
          const void* src) noexcept;

}  // namespace osc::op
