// Runs the cases of the corpus: all right ones, all wrong ones, or single ones by name.
#include <cstdio>
#include <cstring>

#include "cases.h"

namespace {

bool run(const std::vector<corpus::Case>& cases, const char* name) {
    bool found = false;
    for (const corpus::Case& entry : cases)
        if (name == nullptr || std::strcmp(entry.name, name) == 0) {
            found = true;
            entry.run();
            MPI_Barrier(MPI_COMM_WORLD);
        }
    return found;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    int processes = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    bool found = argc > 1 && processes == 2;
    for (int i = 1; i < argc && found; ++i) {
        if (std::strcmp(argv[i], "right") == 0)
            found = run(corpus::kRight, nullptr);
        else if (std::strcmp(argv[i], "wrong") == 0)
            found = run(corpus::kWrong, nullptr);
        else
            found = run(corpus::kRight, argv[i]) || run(corpus::kWrong, argv[i]) || run(corpus::kHanging, argv[i]);
    }
    if (!found) std::fprintf(stderr, "usage: mpiexec -n 2 %s right|wrong|CASE...\n", argv[0]);
    if (found && corpus::rank() == 0) std::printf("all cases have run\n");
    MPI_Finalize();
    return found ? 0 : 2;
}
