// osc_fop_latency: how long an MPI_Fetch_and_op of 8 bytes takes, with its synchronisation.
#include "measures.h"

int main(int argc, char** argv) {
    return osu::latency({"osc_fop_latency", "MPI_Fetch_and_op latency", "ws", osu::only_bytes(8)}, osu::kFetchAndOp,
                        argc, argv);
}
