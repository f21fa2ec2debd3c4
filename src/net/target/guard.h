// What keeps the processes of a window from ending another one by an operation on a page that does not admit the
// access: a hole in the window's memory, or a protected page. Owns what it has found out about the pages.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "op/layout.h"

namespace osc::net {

/// Of one window. One thread at a time.
class Guard {
  public:
    /// Whether the system tells which pages are accessible: Linux 5.14 and later.
    static bool works();

    /// Whether this process may access the `bytes` bytes at `at`; with a shape, the data of it. The answer for a page
    /// stays for kMemory.
    bool admits(std::uintptr_t at, std::uint64_t bytes, const op::Shape& shape, bool write);

    static constexpr std::int64_t kMemory = 10'000'000;  // ns

  private:
    struct Page {
        std::uintptr_t address;
        std::int64_t until;  // when the answer ends
    };
    struct Free {
        void operator()(Page* pages) const { std::free(pages); }
    };
    /// A column of a matrix, say, all of whose pages have admitted an access.
    struct Column {
        std::uintptr_t at = 0;
        op::Run run;
        std::int64_t until = 0;
        bool write = false;

        /// Whether `other`, an access of now, is known to be admitted.
        bool covers(const Column& other) const {
            return at == other.at && run == other.run && (write || !other.write) && until > other.until - kMemory;
        }
    };
    class Ask;

    std::array<Column, 16> columns_;
    std::unique_ptr<Page[], Free> pages_;  // a table; null before its first use
};

}  // namespace osc::net
