// osc_put_latency: how long an MPI_Put takes, with its synchronisation.
#include "measures.h"

int main(int argc, char** argv) {
    return osu::latency({"osc_put_latency", "MPI_Put latency", "wsma", {}}, osu::kPut, argc, argv);
}
