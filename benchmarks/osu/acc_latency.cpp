// osc_acc_latency: how long an MPI_Accumulate (MPI_SUM) takes, with its synchronisation.
#include "measures.h"

int main(int argc, char** argv) {
    return osu::latency({"osc_acc_latency", "MPI_Accumulate latency", "wsma", {}}, osu::kAccumulate, argc, argv);
}
