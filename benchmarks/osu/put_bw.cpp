// osc_put_bw: the bandwidth of many MPI_Puts per synchronisation.
#include "measures.h"

int main(int argc, char** argv) {
    return osu::bandwidth({"osc_put_bw", "MPI_Put bandwidth", "wsmW", osu::streams()}, osu::kPut, false, argc, argv);
}
