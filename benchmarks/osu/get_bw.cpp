// osc_get_bw: the bandwidth of many MPI_Gets per synchronisation.
#include "measures.h"

int main(int argc, char** argv) {
    return osu::bandwidth({"osc_get_bw", "MPI_Get bandwidth", "wsmW", osu::streams()}, osu::kGet, false, argc, argv);
}
