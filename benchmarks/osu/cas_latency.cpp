// osc_cas_latency: how long an MPI_Compare_and_swap of 8 bytes takes, with its synchronisation.
#include "measures.h"

int main(int argc, char** argv) {
    return osu::latency({"osc_cas_latency", "MPI_Compare_and_swap latency", "ws", osu::only_bytes(8)},
                        osu::kCompareAndSwap, argc, argv);
}
