/* late_fortran.c: the host's Fortran library, the argument, is loaded after libosc has found its routes, as by an
 * extension of Python. libosc exports a function of it, which must find the host's then. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>

typedef void (*get_attr)(int* win, int* keyval, MPI_Aint* value, int* flag, int* error);

int main(int argc, char** argv) {
    long* base = NULL;
    MPI_Win win = MPI_WIN_NULL;
    MPI_Init(&argc, &argv);
    MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
    if (argc < 2 || dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) == NULL) {
        printf("not loaded: %s\n", argc < 2 ? "no library" : dlerror());
        return 1;
    }
    /* A predefined key in Fortran is the key in C plus one. */
    int keyval = MPI_WIN_SIZE + 1, flag = 0, error = -1;
    MPI_Aint value = 0;
    get_attr function = NULL;
    *(void**)&function = dlsym(RTLD_DEFAULT, "mpi_win_get_attr_");
    if (function != NULL) function(&win, &keyval, &value, &flag, &error);
    const int right = value == 64 && flag == 1 && error == MPI_SUCCESS;
    if (!right) printf("not true: size %ld, flag %d, error %d\n", (long)value, flag, error);
    MPI_Win_free(&win);
    MPI_Finalize();
    return right ? 0 : 1;
}
