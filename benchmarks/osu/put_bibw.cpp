// osc_put_bibw: the bandwidth of many MPI_Puts per synchronisation in both directions at once, summed.
#include "measures.h"

int main(int argc, char** argv) {
    osu::Options defaults = osu::streams();
    // Both ranks are targets too, so that this is the natural synchronisation.
    defaults.sync = osu::Sync::pscw;
    return osu::bandwidth({"osc_put_bibw", "MPI_Put bidirectional bandwidth", "wsmW", defaults}, osu::kPut, true, argc,
                          argv);
}
