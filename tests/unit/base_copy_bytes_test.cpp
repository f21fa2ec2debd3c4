// copy_bytes() and copy_to_reader() give each byte and change none beside them; copy_bytes() allows places that
// overlap.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "base/copy_bytes.h"

namespace {

constexpr std::size_t kPage = 4096;

std::vector<std::uint8_t> random_bytes(std::size_t bytes) {
    std::mt19937 random(7);
    std::vector<std::uint8_t> result(bytes);
    std::ranges::generate(result, [&] { return static_cast<std::uint8_t>(random()); });
    return result;
}

// The bytes of one array after a copy within it.
void expect_copied(std::vector<std::uint8_t>& memory, std::size_t to, std::size_t from, std::size_t bytes) {
    std::vector<std::uint8_t> expected = memory;
    const std::vector<std::uint8_t> data(memory.begin() + static_cast<std::ptrdiff_t>(from),
                                         memory.begin() + static_cast<std::ptrdiff_t>(from + bytes));
    std::ranges::copy(data, expected.begin() + static_cast<std::ptrdiff_t>(to));
    osc::base::copy_bytes(memory.data() + to, memory.data() + from, bytes);
    ASSERT_TRUE(memory == expected) << bytes << " bytes from " << from << " to " << to;
}

TEST(CopyBytes, CopiesEachSizeFromEachPlace) {
    for (const std::size_t bytes : {0,    1,    7,    8,    100,   2047,  2048,   2049,    2079,    2080,   2175,
                                    2176, 2177, 4096, 8191, 65536, 65537, 131072, 1048575, 1048576, 1048577}) {
        std::vector<std::uint8_t> memory = random_bytes(2 * (bytes + 2 * kPage));
        for (const std::size_t skip : {0, 1, 8, 16, 31, 63, 500, 1024, 1025, 4095})
            expect_copied(memory, bytes + kPage + skip, skip % 3, bytes);
    }
}

TEST(CopyBytes, CopiesWithinItself) {
    for (const std::size_t bytes : {2048, 5000, 70000}) {
        std::vector<std::uint8_t> memory = random_bytes(3 * bytes + kPage);
        for (const std::size_t distance : {std::size_t{0}, std::size_t{1}, std::size_t{31}, std::size_t{32},
                                           std::size_t{129}, bytes - 1, bytes, bytes + 1}) {
            expect_copied(memory, distance, 0, bytes);
            expect_copied(memory, 0, distance, bytes);
        }
    }
}

TEST(CopyBytes, CopiesToAReaderFromEachPlace) {
    for (const std::size_t bytes : {16384, 16385, 16399, 32767, 32768}) {
        const std::vector<std::uint8_t> from = random_bytes(bytes + 64);
        for (const std::size_t skip : {0, 1, 8, 16, 33}) {
            std::vector<std::uint8_t> to(bytes + 3 * 64, 7);
            const std::size_t at = 64 - reinterpret_cast<std::uintptr_t>(to.data()) % 64 + skip;
            osc::base::copy_to_reader(to.data() + at, from.data() + skip, bytes);
            const auto first = to.begin() + static_cast<std::ptrdiff_t>(at);
            const auto last = first + static_cast<std::ptrdiff_t>(bytes);
            EXPECT_TRUE(std::equal(first, last, from.begin() + static_cast<std::ptrdiff_t>(skip)));
            EXPECT_TRUE(std::all_of(to.begin(), first, [](auto byte) { return byte == 7; }));
            EXPECT_TRUE(std::all_of(last, to.end(), [](auto byte) { return byte == 7; }));
        }
    }
}

TEST(CopyBytes, CopiesNothingToNull) {
    osc::base::copy_bytes(nullptr, nullptr, 0);
}

}  // namespace
