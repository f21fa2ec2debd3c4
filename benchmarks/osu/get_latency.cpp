// osc_get_latency: how long an MPI_Get takes, with its synchronisation.
#include "measures.h"

int main(int argc, char** argv) {
    return osu::latency({"osc_get_latency", "MPI_Get latency", "wsma", {}}, osu::kGet, argc, argv);
}
