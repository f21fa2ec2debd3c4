// MPI 4.1, 12.3.4: the result of MPI_Get_accumulate may have a datatype with gaps.
// case: MPI_Get_accumulate with a strided result
#include "case.h"

int main() {
    begin();
    alignas(64) int memory[100];
    int mine[100], result[100];
    for (int i = 0; i < 100; ++i)
        memory[i] = 1000 * rank + i, mine[i] = i, result[i] = -1;
    MPI_Win win = create(memory, sizeof memory);
    MPI_Datatype strided;
    MPI_Type_vector(50, 1, 2, MPI_INT, &strided);
    MPI_Type_commit(&strided);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    SUCCEED(MPI_Get_accumulate(mine, 1, strided, result, 1, strided, next, 0, 1, strided, MPI_SUM, win));
    MPI_Win_flush(next, win);
    for (int i = 0; i < 100; ++i)
        expect(result[i] == (i % 2 ? -1 : 1000 * next + i), "the result is another");
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 100; ++i)
        expect(memory[i] == 1000 * rank + (i % 2 ? i : 2 * i), "the sum is another");
    MPI_Type_free(&strided);
    MPI_Win_free(&win);
    return end();
}
