// MPI 4.1, 9.2 and 12.2.2: the info key mpi_minimum_memory_alignment gives the least alignment of allocated memory.
// case: memory of the alignment that mpi_minimum_memory_alignment asks for
#include <cstdint>

#include "case.h"

int main() {
    begin();
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "mpi_minimum_memory_alignment", "4096");
    for (int turn = 0; turn < 4; ++turn) {
        char* base = nullptr;
        MPI_Win win = allocate(100, &base, info);
        expect((std::uintptr_t)base % 4096 == 0, "the memory has another alignment");
        MPI_Win_free(&win);
    }
    MPI_Info_free(&info);
    return end();
}
