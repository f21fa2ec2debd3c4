// PlaceList: searches give the answer of one list while a thread replaces it by others, longer and shorter.
#include "plugins/adopt/place_list.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace {

using osc::shm::Place;
using osc::shm::PlaceList;

constexpr std::uintptr_t kAll = std::uintptr_t{1} << 47;

// `count` places of 10 addresses, of which the one in the middle starts at `middle`.
std::vector<Place> places(std::size_t count, std::uintptr_t middle) {
    std::vector<Place> list;
    for (std::size_t i = 0; i < count; ++i) {
        const std::uintptr_t first = middle + 100 * i - 100 * (count / 2);
        list.push_back({first, first + 10});
    }
    return list;
}

}  // namespace

TEST(PlaceList, FindsWhatMeetsAPlace) {
    PlaceList list;
    EXPECT_FALSE(list.meets(0, kAll));
    for (const std::size_t count : {1, 2, 63, 64, 65, 1000, 3}) {
        const auto all = places(count, 1'000'000);
        list.publish(all.data(), all.size(), kAll);
        for (const Place& place : all) {
            EXPECT_TRUE(list.meets(place.first, place.end));
            EXPECT_TRUE(list.meets(place.first - 5, place.first + 1));
            EXPECT_TRUE(list.meets(place.end - 1, place.end + 5));
            EXPECT_FALSE(list.meets(place.end, place.end + 90));
        }
    }
    list.publish(nullptr, 0, kAll);
    EXPECT_FALSE(list.meets(0, kAll));
}

TEST(PlaceList, SearchesSeeOneListDuringChanges) {
    PlaceList list;
    constexpr std::uintptr_t kMiddle = 10'000'000;
    const auto first = places(1, kMiddle);
    list.publish(first.data(), first.size(), kAll);
    std::atomic<bool> done{false};
    std::atomic<int> wrong{0}, searches{0};
    std::vector<std::thread> readers;
    readers.reserve(2);
    for (int reader = 0; reader < 2; ++reader)
        readers.emplace_back([&] {
            while (!done || searches < 100) {
                if (!list.meets(kMiddle, kMiddle + 10)) ++wrong;
                if (list.meets(kMiddle + 10, kMiddle + 100)) ++wrong;
                ++searches;
            }
        });
    for (std::size_t round = 0; round < 3000; ++round) {
        const auto next = places(1 + round * 7 % 500, kMiddle);
        list.publish(next.data(), next.size(), kAll);
    }
    done = true;
    for (std::thread& reader : readers)
        reader.join();
    EXPECT_EQ(wrong, 0);
}
