// A fixed number of places for what a stream has in flight.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace osc::net {

/// `Place` has an atomic `serial`, which is 0 while the place is free. Serials grow in the order of issue.
template <class Place, std::size_t kPlaces>
class InFlight {
  public:
    /// A free place; null if all are taken.
    Place* free() {
        const auto found = std::ranges::find_if(
            places_, [](const Place& place) { return place.serial.load(std::memory_order_seq_cst) == 0; });
        return found == places_.end() ? nullptr : &*found;
    }
    /// Whether nothing with this serial or a lower one is in flight. Thread-safe.
    bool ended(std::uint64_t serial) const {
        return std::ranges::all_of(places_, [&](const Place& place) {
            const std::uint64_t its = place.serial.load(std::memory_order_seq_cst);
            return its == 0 || its > serial;
        });
    }
    /// How many places are taken.
    std::size_t taken() const {
        return static_cast<std::size_t>(std::ranges::count_if(
            places_, [](const Place& place) { return place.serial.load(std::memory_order_relaxed) != 0; }));
    }
    auto begin() { return places_.begin(); }
    auto end() { return places_.end(); }

  private:
    std::array<Place, kPlaces> places_;
};

}  // namespace osc::net
