// The loops over sizes that several programs share: each is the whole of a program that measures one operation.
#pragma once

#include "operations.h"
#include "options.h"

namespace osu {

// What programs differ in from the defaults of the options: iterations that move many messages; operations of one size.
inline Options streams() {
    Options options;
    options.small = {900, 10};
    options.large = {90, 2};
    return options;
}
inline Options only_bytes(std::size_t bytes) {
    Options options;
    options.smallest = bytes;
    options.largest = bytes;
    options.large = options.small;
    return options;
}

// The time of one operation with its synchronisation.
int latency(const Program& program, const Operation& operation, int argc, char** argv);

// How many bytes a second many operations per synchronisation move, from rank 0 or from both.
int bandwidth(const Program& program, const Operation& operation, bool both_ways, int argc, char** argv);

}  // namespace osu
