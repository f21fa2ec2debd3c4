// The synchronisations that are timed between ranks in a ring, and whether they synchronise: their data shows it.
#pragma once

#include <cstdint>
#include <string_view>

#include "report.h"
#include "ring.h"
#include "statistics.h"

namespace osu {

// Whose memory the epochs reach: every rank its right neighbour's, or all of them that of the first rank.
enum class Reaches { right, first };

struct Synchronisation {
    std::string_view name;
    Column column;
    Reaches reaches;
    // Whether a target knows by its own calls that the epoch is over.
    bool active;
    // Before the first of many and after the last, outside the clock.
    void (*begin)(Ring&);
    void (*once)(Ring&);
    void (*end)(Ring&);
};

inline constexpr int kSynchronisations = 6;
extern const Synchronisation kSynchronisation[kSynchronisations];

// Of this name, which there is.
const Synchronisation& synchronisation(std::string_view name);

// Collective: whether `epochs` epochs of this kind deliver their data; adds their number to `round`. After this every
// epoch of the ring puts its mark.
bool synchronises(Ring& ring, const Synchronisation& kind, std::uint64_t& round, int epochs = kBatches);

// Collective: whether exclusive locks keep the others out.
bool excludes(Ring& ring);

}  // namespace osu
