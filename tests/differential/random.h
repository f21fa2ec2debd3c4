// The random numbers of the differential test: the same sequence at every rank for the same seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace diff {

class Random {
  public:
    explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du) {}

    std::uint64_t next() {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    /// A number in [0, bound), 0 for bound 0.
    std::size_t below(std::size_t bound) { return bound == 0 ? 0 : next() % bound; }
    int between(int low, int high) { return low + static_cast<int>(below(static_cast<std::size_t>(high - low + 1))); }
    /// True once in `times`.
    bool once_in(std::size_t times) { return below(times) == 0; }
    template <class T>
    const T& pick(const std::vector<T>& from) {
        return from[below(from.size())];
    }
    template <class T>
    T pick(std::initializer_list<T> from) {
        return from.begin()[below(from.size())];
    }
    template <class T>
    void shuffle(std::vector<T>& all) {
        for (std::size_t i = all.size(); i > 1; --i)
            std::swap(all[i - 1], all[below(i)]);
    }

  private:
    std::uint64_t state_;
};

}  // namespace diff
