// The measuring program of the network path, an ordinary MPI program whose ranks 0 and 1 are on different hosts, run by
// net_compare:
//   net_bench [--short] [--list] [MEASURE...]
// Without names it runs all measures; each prints one line of JSON on rank 0.
#include <signal.h>
#include <unistd.h>

#include "measures.h"
#include "net.h"

namespace {

constexpr unsigned kFinalizeSeconds = 8;

void give_up(int) {
    constexpr char kLine[] = "{\"finalize\": \"no end\"}\n";
    // Nothing is left to do about a failure.
    const ssize_t ignored = write(STDOUT_FILENO, kLine, sizeof kLine - 1);
    _exit(ignored < 0 ? 1 : 0);
}

// MPI_Finalize of MPICH 4.0.2 over UCX's TCP does not end now and then, with the machine loaded in some starts of a
// hundred: one process waits in the launcher's barrier, where it serves nothing, while the other polls for it. All
// figures are out by then; the program says what happened and ends.
void limit_finalize() {
    signal(SIGALRM, give_up);
    alarm(kFinalizeSeconds);
}

}  // namespace

int main(int argc, char** argv) {
    bench::Measures list;
    bench::add_small_measures(list);
    bench::add_bulk_measures(list);
    bench::add_sync_measures(list);
    bench::add_net_computing_measures(list);
    bench::add_net_size_measures(list);
    bench::add_net_stream_measures(list);
    bench::add_net_idle_measures(list);
    return bench::run_program({"net_bench", bench::net_budget, limit_finalize}, list, argc, argv);
}
