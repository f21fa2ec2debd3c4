// osc_get_acc_latency: how long an MPI_Get_accumulate (MPI_SUM) takes, with its synchronisation.
#include "measures.h"

int main(int argc, char** argv) {
    return osu::latency({"osc_get_acc_latency", "MPI_Get_accumulate latency", "wsma", {}}, osu::kGetAccumulate, argc,
                        argv);
}
