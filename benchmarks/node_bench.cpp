// The measuring program, an ordinary MPI program that is compiled once per MPI and run by node_compare:
//   node_bench [--short] [--list] [MEASURE...]
// Without names it runs all measures; each prints one line of JSON on rank 0.
#include "measures.h"

int main(int argc, char** argv) {
    bench::Measures list;
    bench::add_small_measures(list);
    bench::add_bulk_measures(list);
    bench::add_shape_measures(list);
    bench::add_contended_measures(list);
    bench::add_sync_measures(list);
    bench::add_busy_measures(list);
    bench::add_beside_measures(list);
    return bench::run_program({"node_bench", bench::budget, nullptr}, list, argc, argv);
}
