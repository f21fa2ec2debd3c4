// What the programs of seeds 003 and 004 have in common: epochs of all processes, and transfers between two of them,
// each timed, and each with data whose arrival is looked at afterwards.
#pragma once

#include <cstddef>
#include <string>

#include "measures.h"
#include "osu/epochs.h"
#include "osu/memory.h"
#include "osu/operations.h"
#include "osu/synchronisations.h"
#include "osu/target_window.h"

namespace bench {

// Bytes of the operations.
inline constexpr std::size_t kSeedSizes[] = {8, 64, 512, 4096, 32768, 262144};

// There are many measures, and the scripts repeat them.
inline Budget seed_budget(bool brief) {
    return brief ? budget(true) : Budget{2e6, 2e6, 5};
}

// A flush with nothing to wait for. It synchronises no data, but the seeds report its cost.
extern const osu::Synchronisation kEmptyFlush;

// A loop is this long at least, if its calls are slow.
inline constexpr double kSeedLoopNs = 2e7;

// Epochs of all processes in a ring, empty ones and, where there is a name for them, ones with a word put in each.
void run_epochs(const Context& c, const osu::Synchronisation& kind, const std::string& empty,
                const std::string& with_put = "");

// Epochs between rank 0 and its target with `count` operations of `bytes` in each, one behind the other in memory;
// without an operation they are empty.
class SeedTransfer {
  public:
    SeedTransfer(const Context& c, osu::Sync sync, const osu::Operation* operation, std::size_t bytes,
                 std::size_t count);

    Timing timed();
    // Epochs whose data is compared: what the timed ones did, they did with other data in the same places.
    bool moves_data();

  private:
    void once();
    bool moves_data_of(std::uint64_t round);

    const Context& c_;
    const osu::Operation* operation_;
    std::size_t bytes_;
    std::size_t total_;
    osu::Window window_;
    osu::Memory operand_;
    osu::Memory result_;
    osu::Epochs epochs_;
};

// Adds a measure of such epochs: the time of one, or of one of its `parts`.
struct Transferred {
    osu::Sync sync;
    const osu::Operation* operation;
    std::size_t bytes = 0;
    std::size_t count = 1;
    std::size_t parts = 1;
};
void add_transfer(Measures& list, const std::string& name, const Transferred& what);
// One for each of kSeedSizes, which ends its name.
void add_sizes(Measures& list, const std::string& name, Transferred what);

}  // namespace bench
