// Operations between pairs of ranks, timed in batches: rank r of the lower half works with rank r of the upper half.
// With -c each timed iteration has data of its own, which is validated before the next.
#pragma once

#include <cstdint>
#include <vector>

#include "epochs.h"
#include "operations.h"
#include "program.h"
#include "statistics.h"
#include "target_window.h"

namespace osu {

// one_way: the lower half sends. alternating: both do, in turn; the time is that of one of the two. both_ways: at once.
enum class Direction { one_way, alternating, both_ways };

// What the ranks compute meanwhile, in nanoseconds: the origin between issuing and synchronising; the target instead of
// waiting inside MPI, in which case the origin fills half of that time with iterations, at least one.
struct Computing {
    double origin = 0;
    double target = 0;
};

struct Measured {
    Summary ns;  // per iteration
    bool valid;
};

class Transfers {
  public:
    // Room for sizes up to the largest that the options name, `window` operations at a time. All is collective.
    Transfers(const Run& run, const Operation& operation, Direction direction, long window);

    // How many operations an iteration has at this size.
    long in_flight(std::size_t bytes) const;
    Measured measure(std::size_t bytes, Repeats repeats, Computing computing = {});

  private:
    void issue() const;
    double iterate(long iterations);
    double start(long iterations);
    double batch(long iterations);
    double checked_iteration();
    void prepare();
    void check_result();
    void check_memory();

    const Run& run_;
    const Operation& operation_;
    Direction direction_;
    long window_;
    int half_;
    bool lower_;
    int peer_;
    bool sends_;
    bool receives_;
    std::size_t room_;
    Window target_;
    std::size_t offset_;
    Memory operand_;
    Memory result_;
    // What validation expects in the target's memory (of this rank) and in the result (of this rank too), and the
    // operand that it works the former out from.
    Memory expected_memory_;
    Memory peers_operand_;
    Memory expected_result_;
    Epochs epochs_;
    // The case in hand.
    std::size_t bytes_ = 0;
    std::size_t total_ = 0;
    Computing computing_;
    std::uint64_t round_ = 0;
    bool right_ = true;
};

}  // namespace osu
