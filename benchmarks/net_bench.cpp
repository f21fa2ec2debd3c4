// The measuring program of the network path, an ordinary MPI program whose ranks 0 and 1 are on different hosts, run by
// net_compare:
//   net_bench [--short] [--list] [MEASURE...]
// Without names it runs all measures; each prints one line of JSON on rank 0.
#include "finalize.h"
#include "measures.h"
#include "net.h"

int main(int argc, char** argv) {
    bench::Measures list;
    bench::add_small_measures(list);
    bench::add_bulk_measures(list);
    bench::add_shape_measures(list);
    bench::add_sync_measures(list);
    bench::add_net_computing_measures(list);
    bench::add_net_size_measures(list);
    bench::add_net_stream_measures(list);
    bench::add_net_idle_measures(list);
    return bench::run_program({"net_bench", bench::net_budget, bench::limit_finalize}, list, argc, argv);
}
