// Preloaded below libosc and the spy into the examples, which know nothing of either: at MPI_Finalize it asks their
// counters whether libosc served the functions that OSC_TEST_SERVED names, in every process, and whether any one-sided
// call reached the host. If not, it says so and ends the process with status 3.
#include <dlfcn.h>
#include <mpi.h>
#include <osc/osc.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>

extern "C" unsigned long long spy_count(const char* mpi_function);

namespace {

bool proved() {
    bool right = true;
    const char* served = std::getenv("OSC_TEST_SERVED");
    std::istringstream names(served != nullptr ? served : "");
    for (std::string name; names >> name;) {
        if (osc_served(name.c_str()) != 0) continue;
        std::fprintf(stderr, "%s: libosc served no call\n", name.c_str());
        right = false;
    }
    for (const char* name :
         {"MPI_Put", "MPI_Get", "MPI_Accumulate", "MPI_Fetch_and_op", "MPI_Compare_and_swap", "MPI_Win_fence",
          "MPI_Win_start", "MPI_Win_complete", "MPI_Win_post", "MPI_Win_wait", "MPI_Win_lock", "MPI_Win_unlock",
          "MPI_Win_lock_all", "MPI_Win_unlock_all", "MPI_Win_flush", "MPI_Win_flush_all", "MPI_Win_flush_local_all"}) {
        if (osc_forwarded(name) == 0 && spy_count(name) == 0) continue;
        std::fprintf(stderr, "%s: a call reached the host\n", name);
        right = false;
    }
    return right;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int PMPI_Finalize() {
    static const auto next = reinterpret_cast<int (*)()>(dlsym(RTLD_NEXT, "PMPI_Finalize"));
    const bool right = proved();
    const int error = next();
    if (!right) _exit(3);
    return error;
}
