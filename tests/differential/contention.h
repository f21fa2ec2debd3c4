// Rounds with contention: all ranks access the same few bytes many times. The outcome is still exact. Each is one step.
#pragma once

#include "coverage.h"

namespace diff {

/// Accumulates of 1 by all ranks on one array, long and single-element ones, self included.
void storm(Place& place, Model& model, Coverage& coverage, Random& random, Random& jitter);
/// Read, change, write under exclusive locks; readers under shared ones never see half a change.
void exclusive_counting(Place& place, Model& model, Coverage& coverage, Random& random, Random& jitter);
/// Counting by compare-and-swap until it succeeds.
void swap_loop(Place& place, Model& model, Coverage& coverage, Random& random);

}  // namespace diff
