// The system's pages.
#pragma once

#include <unistd.h>

#include <cstdint>

namespace osc::base {

/// The bytes of a page.
inline std::uintptr_t page_bytes() {
    static const auto kBytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    return kBytes;
}

/// The start of the page that holds `address`, which may be an offset in a file.
inline std::uintptr_t page_down(std::uintptr_t address) {
    return address / page_bytes() * page_bytes();
}

/// `address`, or the start of the next page; a number of bytes in whole pages.
inline std::uintptr_t page_up(std::uintptr_t address) {
    return page_down(address + page_bytes() - 1);
}

}  // namespace osc::base
