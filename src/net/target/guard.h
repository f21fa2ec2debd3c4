// What keeps the agent from dying on a page that does not admit an access: a hole in the memory of a window, or a
// protected page. Owns what it has found out about a window's pages.
#pragma once

#include <cstdint>
#include <memory>

#include "op/layout.h"

namespace osc::net {

/// Of one window. One thread at a time.
class Guard {
  public:
    /// Whether the system tells which pages are accessible: Linux 5.14 and later.
    static bool works();

    /// Whether this process may access the `bytes` bytes at `at`; with a shape, the data of it.
    bool admits(std::uintptr_t at, std::uint64_t bytes, const op::Shape& shape, bool write);

  private:
    std::unique_ptr<std::uintptr_t[]> pages_;  // addresses of pages that have admitted an access, and kRead or kWrite
};

}  // namespace osc::net
