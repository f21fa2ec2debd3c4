// The numbered steps of a program: its rounds, their operations, the regions that a dynamic window replaces, the
// crowds. Every rank counts them alike. A program that keeps only some of its steps is valid, and the model follows it.
#pragma once

#include <cstddef>
#include <set>
#include <string>

namespace diff {

class Steps {
  public:
    /// Only the steps with these numbers, separated by commas, run.
    void keep(const std::string& numbers);
    /// Rank 0 prints the steps that would run; none runs.
    void list() { listing_ = true; }
    bool listing() const { return listing_; }

    /// The next program begins.
    void restart() { next_ = 0; }
    /// Counts the next step; true if it runs.
    template <class Describe>
    bool take(Describe&& describe) {
        const std::size_t number = next_++;
        const bool kept = !choosing_ || kept_.contains(number);
        if (!listing_) return kept;
        if (kept) print(number, describe());
        return false;
    }

  private:
    static void print(std::size_t number, const std::string& what);

    std::size_t next_ = 0;
    bool choosing_ = false;
    bool listing_ = false;
    std::set<std::size_t> kept_;
};

Steps& steps();

}  // namespace diff
