// What the two programs of seed 000 have in common.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace bench {

inline constexpr std::size_t kCounts[] = {8, 256, 1024, 65536};

struct Free {
    void operator()(long* p) const { std::free(p); }
};

// The origin's data, equally aligned in both programs: how fast memory is copied depends on it.
inline std::unique_ptr<long, Free> page_aligned(std::size_t longs) {
    constexpr std::size_t kPage = 4096;
    const std::size_t bytes = (longs * sizeof(long) + kPage - 1) / kPage * kPage;
    auto* memory = static_cast<long*>(std::aligned_alloc(kPage, bytes));
    if (memory == nullptr) throw std::bad_alloc();
    std::memset(memory, 0, bytes);
    return std::unique_ptr<long, Free>(memory);
}

}  // namespace bench
