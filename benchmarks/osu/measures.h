// The loops over sizes that several programs share: each is the whole of a program that measures one operation.
#pragma once

#include "operations.h"
#include "options.h"

namespace osu {

// The time of one operation with its synchronisation.
int latency(const Program& program, const Operation& operation, int argc, char** argv);

// How many bytes a second many operations per synchronisation move, from rank 0 or from both.
int bandwidth(const Program& program, const Operation& operation, bool both_ways, int argc, char** argv);

}  // namespace osu
