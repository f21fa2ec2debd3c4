/* A program without windows: prints its memory map. An argument starts MPI before. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
    int started = 0;
    if (argc > 1)
        MPI_Init(&argc, &argv);
    else
        MPI_Initialized(&started);
    FILE* const map = fopen("/proc/self/smaps", "r");
    char line[4096];
    while (map != NULL && fgets(line, sizeof line, map) != NULL)
        fputs(line, stdout);
    if (map != NULL) fclose(map);
    if (argc > 1) MPI_Finalize();
    return map == NULL;
}
