// MPI 4.1, 10: a key that the library does not know is ignored; a value that it cannot read has no defined effect.
// case: mistake: info values that mean nothing
#include "case.h"

int main() {
    begin();
    const char* keys[] = {"mpi_minimum_memory_alignment", "accumulate_ordering", "accumulate_ops", "same_size",
                          "no_locks"};
    for (const char* key : keys) {
        for (const char* value : {"0", "abc", "-7", "0x1000", ","}) {
            char* base = nullptr;
            void* block = nullptr;
            MPI_Info info;
            MPI_Info_create(&info);
            MPI_Info_set(info, key, value);
            MPI_Win win = allocate(64, &base, info);
            base[0] = 1;
            SUCCEED(MPI_Alloc_mem(64, info, &block));
            MPI_Free_mem(block);
            MPI_Info_free(&info);
            MPI_Win_free(&win);
        }
    }
    return end();
}
